/// A message's time to live, as its header states it. docs/session.md, "Time to live". Layer: base.
#pragma once

#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <lightq/base/limits.hpp>

namespace lightq::inline v1 {

/// The name of the header that is a message's time to live in milliseconds.
inline constexpr std::string_view ttl_header_name = "lightq-ttl-ms";

/// Returns the time to live that a header's value states. Returns nothing unless the value is a number of 1
/// to limits::ttl_ms_max in decimal digits, without leading zeros.
constexpr std::optional<std::chrono::milliseconds> ttl_in(std::string_view value) {
  constexpr std::size_t digits_max = 12;  // of ttl_ms_max
  if (value.empty() || value.size() > digits_max || value.front() == '0') return std::nullopt;
  std::int64_t ms = 0;
  for (const char digit : value) {
    if (digit < '0' || digit > '9') return std::nullopt;
    ms = ms * 10 + (digit - '0');
  }
  if (ms > limits::ttl_ms_max) return std::nullopt;
  return std::chrono::milliseconds(ms);
}

/// The value of the header for a time to live. A plain value.
class TtlText {
 public:
  /// Requires: `ttl` is 1 ms to limits::ttl_ms_max.
  explicit TtlText(std::chrono::milliseconds ttl)
      : end_(std::to_chars(digits_.data(), digits_.data() + digits_.size(), ttl.count()).ptr) {}
  TtlText(const TtlText&) = delete;
  TtlText& operator=(const TtlText&) = delete;

  [[nodiscard]] std::string_view text() const {
    return {digits_.data(), static_cast<std::size_t>(end_ - digits_.data())};
  }

 private:
  std::array<char, 24> digits_{};
  char* end_;
};

}  // namespace lightq::inline v1
