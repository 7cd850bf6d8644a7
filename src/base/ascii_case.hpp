/// ASCII letters in lower case. Layer: base.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace lightq {

/// Returns a letter from A to Z in lower case, and every other byte unchanged. The locale does not matter.
constexpr char in_lower_case(char letter) {
  return 'A' <= letter && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

/// Returns a text with its letters from A to Z in lower case.
inline std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char each) { return in_lower_case(each); });
  return lower;
}

}  // namespace lightq
