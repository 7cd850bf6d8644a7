/// The knowledge of a log's user: which messages were appended, and which of them are promised to survive.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include <lightq/base/types.hpp>

namespace lightq::test {

/// Stores every message of an exploration by its number. Each message repeats its number, so that no two
/// messages share a sector's bytes.
class Payloads {
 public:
  /// Returns the number of a new message of `bytes`.
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
  /// Forgets the messages from this number on, because their part of the exploration has ended.
  void forget_from(std::size_t count) { count_ = count; }

 private:
  std::deque<std::string> texts_;
  std::size_t count_ = 0;
  std::uint64_t made_ = 0;
};

/// The model with which a log is compared.
struct History {
  static constexpr std::int32_t lost = -1;
  static constexpr std::uint64_t no_cursor = ~std::uint64_t{0};

  std::vector<std::int32_t> messages;  ///< by offset: the message's number, or `lost`
  Offset certain_end;                  ///< appends up to here have returned; later ones are under way
  Offset first;                        ///< messages before it may have been dropped
  Offset durable;                      ///< messages before it were promised to survive a power cut
  Offset durable_from;  ///< messages before it were dropped before that promise and are not part of it
  std::uint64_t committed = no_cursor;      ///< the last cursor that was written
  std::vector<std::uint64_t> maybe_cursor;  ///< cursors written since then without success

  bool closed = false;  ///< close has returned, and nothing was appended since

  [[nodiscard]] Offset end() const { return {messages.size()}; }
};

}  // namespace lightq::test
