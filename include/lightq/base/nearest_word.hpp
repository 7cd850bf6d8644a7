/// Finds the known word for which a mistyped word was probably meant. Layer: base.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lightq::inline v1 {

namespace detail {

/// Returns the number of edits (insertions, deletions, replacements, swaps of neighbours) between two words.
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> edits(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) edits[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) edits[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = edits[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      edits[i][j] = std::min({edits[i - 1][j] + 1, edits[i][j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) edits[i][j] = std::min(edits[i][j], edits[i - 2][j - 2] + 1);
    }
  }
  return edits[a.size()][b.size()];
}

}  // namespace detail

/// Returns the word of `known` that is nearest to `typed`: the only one that begins with it (at least 3
/// characters), or else the one with the fewest edits. Returns nothing if none is near. Thread: any.
inline std::optional<std::string> nearest_spelling(std::string_view typed,
                                                   std::span<const std::string_view> known) {
  constexpr std::size_t typed_bytes_max = 64;
  if (typed.size() > typed_bytes_max) return std::nullopt;
  const auto begins = [&](std::string_view word) { return typed.size() >= 3 && word.starts_with(typed); };
  if (std::ranges::count_if(known, begins) == 1) return std::string(*std::ranges::find_if(known, begins));
  std::optional<std::string> best;
  std::size_t fewest = typed.size() <= 4 ? 2 : 3;  // from this number of edits on, a word is not near
  for (const std::string_view word : known) {
    const std::size_t edits = detail::edit_distance(typed, word);
    if (edits >= fewest) continue;
    fewest = edits;
    best = std::string(word);
  }
  return best;
}

}  // namespace lightq::inline v1
