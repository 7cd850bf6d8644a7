/// What a user of a log knows: which messages were appended, and which of them are promised.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include <lightq/base/types.hpp>

namespace lightq::test {

/// Every message of an exploration by its number. Each says its number over and over, so that no two of them
/// share a sector's bytes.
class Payloads {
 public:
  /// A new message of `bytes`.
  std::int32_t make(std::size_t bytes) {
    const auto number = static_cast<std::int32_t>(count_);
    if (count_ == texts_.size()) texts_.emplace_back();
    std::string& text = texts_[count_++];
    const std::string mark = "m" + std::to_string(++made_) + "_";
    text.clear();
    while (text.size() < bytes) text += mark;
    text.resize(bytes);
    return number;
  }
  [[nodiscard]] const std::string& text(std::int32_t number) const {
    return texts_[static_cast<std::size_t>(number)];
  }
  [[nodiscard]] std::size_t count() const { return count_; }
  /// Forgets all from this number on: their part of the exploration is over.
  void forget_from(std::size_t count) { count_ = count; }

 private:
  std::deque<std::string> texts_;
  std::size_t count_ = 0;
  std::uint64_t made_ = 0;
};

/// The model that a log is compared with.
struct History {
  static constexpr std::int32_t lost = -1;
  static constexpr std::uint64_t no_cursor = ~std::uint64_t{0};

  std::vector<std::int32_t> messages;       ///< by offset: its number, or `lost`
  Offset certain_end;                       ///< appends up to here have returned; the rest is on its way
  Offset first;                             ///< what is before it may have been dropped
  Offset durable;                           ///< what is before it was said to survive a power cut
  Offset durable_from;                      ///< what was dropped when that was said is not meant
  std::uint64_t committed = no_cursor;      ///< the cursor that was written last
  std::vector<std::uint64_t> maybe_cursor;  ///< cursors whose writing did not return without error since

  bool closed = false;  ///< close returned, and nothing was appended since

  [[nodiscard]] Offset end() const { return {messages.size()}; }
};

}  // namespace lightq::test
