/// How far a group has received the letters that are given back to it. Layer: delivery.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <lightq/base/types.hpp>

namespace lightq::broker {

/// Returns the number of a run (see LetterBook) as 16 hexadecimal digits.
inline std::string run_text(std::uint64_t run) {
  constexpr std::size_t digits = 16;
  char text[digits];
  const char* const begin = text;
  const char* const end = std::to_chars(text, text + digits, run, 16).ptr;
  return std::string(digits - static_cast<std::size_t>(end - begin), '0') + std::string(begin, end);
}
/// Returns the run whose number `text` is, or nothing if it is none.
inline std::optional<std::uint64_t> run_in(std::string_view text) {
  std::uint64_t run = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), run, 16);
  const bool is_whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
  return is_whole && run != 0 ? std::optional(run) : std::nullopt;
}

/// The place that a run of a dead-letter topic has reached in a group: letters of the run below `end` have
/// been given back to the group, and no later one.
struct GiveBackMark {
  TopicId letters;        ///< the dead-letter topic
  std::uint64_t run = 0;  ///< not 0
  Offset end;             ///< in the dead-letter topic
  friend bool operator==(const GiveBackMark&, const GiveBackMark&) = default;
};

/// The marks of a group: one for each dead-letter topic, that of its last run. A topic begins a run only when
/// it has saved the results of the one before, so earlier marks are not needed any more. A plain value for
/// one thread.
class GiveBackMarks {
 public:
  /// With more dead-letter topics the mark that was set first is forgotten.
  static constexpr std::size_t marks_max = 64;

  /// Returns the end of this run, or the lowest offset if none of its letters was given back.
  [[nodiscard]] Offset end_of(TopicId letters, std::uint64_t run) const {
    const auto at = std::ranges::find(marks_, letters, &GiveBackMark::letters);
    return at != marks_.end() && at->run == run ? at->end : Offset{0};
  }
  /// Sets the mark of the topic's run, in place of the one before.
  void set(const GiveBackMark& mark) {
    ++changes_;
    std::erase_if(marks_, [&](const GiveBackMark& each) { return each.letters == mark.letters; });
    if (marks_.size() >= marks_max) marks_.erase(marks_.begin());
    marks_.push_back(mark);
  }
  [[nodiscard]] const std::vector<GiveBackMark>& all() const { return marks_; }
  /// Returns the number of changes since the start.
  [[nodiscard]] std::uint64_t changes() const { return changes_; }

 private:
  std::vector<GiveBackMark> marks_;  // in the order in which they were set
  std::uint64_t changes_ = 0;
};

}  // namespace lightq::broker
