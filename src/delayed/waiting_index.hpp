/// The delayed messages that wait, in memory: by number and by due time. Layer: delayed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "delayed/delayed_message.hpp"
#include "delayed/sorted_blocks.hpp"

namespace lightq::broker {

/// A message that waits.
struct WaitingMessage {
  std::uint64_t number = 0;
  std::int64_t due_us = 0;  ///< microseconds since 1970
  std::uint64_t place = 0;  ///< of its content, as LogBodies or MemoryBodies understands it
  std::uint32_t bytes = 0;  ///< of attributes, without the due time, and payload

  [[nodiscard]] std::uint64_t key() const { return number; }
  [[nodiscard]] DuePosition position() const { return {due_us, number}; }
};

/// Finds waiting messages by number, and walks them in the order in which they become due. Takes about 48 to
/// 60 bytes a message. Thread: one.
class WaitingIndex {
 public:
  [[nodiscard]] std::size_t size() const { return by_number_.size(); }
  [[nodiscard]] bool empty() const { return by_number_.empty(); }
  /// Returns the sum of all messages' bytes.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::size_t memory_bytes() const {
    return by_number_.memory_bytes() + by_due_.memory_bytes();
  }

  /// Adds a message. Requires: its number is not there. Throws std::bad_alloc; nothing has changed then.
  void add(const WaitingMessage& message) {
    by_number_.insert(message);
    try {
      if (!is_loading_) by_due_.insert({message.position()});
    } catch (...) {
      by_number_.erase(message.number);
      throw;
    }
    bytes_ += message.bytes;
  }
  /// Removes the message. Returns false if it is not there.
  bool remove(std::uint64_t number) {
    const WaitingMessage* const found = find(number);
    if (found == nullptr) return false;
    if (!is_loading_) by_due_.erase(found->position());
    bytes_ -= found->bytes;
    return by_number_.erase(number);
  }
  /// Changes the due time. Requires: the message is there.
  void set_due(std::uint64_t number, std::int64_t due_us) {
    WaitingMessage* const found = by_number_.find(number);
    if (!is_loading_) {
      by_due_.erase(found->position());
      by_due_.insert({{due_us, number}});
    }
    found->due_us = due_us;
  }
  /// Changes the place of the content. Requires: the message is there.
  void set_place(std::uint64_t number, std::uint64_t place) { by_number_.find(number)->place = place; }

  [[nodiscard]] const WaitingMessage* find(std::uint64_t number) const { return by_number_.find(number); }
  /// Returns the message with this number or the next higher one, or null.
  [[nodiscard]] const WaitingMessage* from_number(std::uint64_t number) const {
    return by_number_.at(by_number_.lower_bound(number));
  }

  /// Walks in the order of due times. Requires: no change meanwhile, and load_end was called.
  class Walk {
   public:
    /// Returns the position of the message, or null at the end.
    [[nodiscard]] const DuePosition* get() const {
      const ByDue* const entry = entries_->at(place_);
      return entry == nullptr ? nullptr : &entry->position;
    }
    void next() { place_ = entries_->next(place_); }

   private:
    friend class WaitingIndex;
    struct ByDue {
      DuePosition position;
      [[nodiscard]] DuePosition key() const { return position; }
    };
    using Entries = SortedBlocks<ByDue>;
    Walk(const Entries& entries, typename Entries::Place place) : entries_(&entries), place_(place) {}
    const Entries* entries_;
    typename Entries::Place place_;
  };
  /// Walks from the first message at or behind `from`.
  [[nodiscard]] Walk walk(DuePosition from = {}) const { return {by_due_, by_due_.lower_bound(from)}; }
  /// Returns the position of the first message, or null.
  [[nodiscard]] const DuePosition* first() const { return walk().get(); }

  // Loading many messages: the order of due times is built at the end, by sorting once.

  void load_begin() { is_loading_ = true; }
  void load_end() {
    std::vector<DuePosition> positions;
    positions.reserve(by_number_.size());
    for (auto at = by_number_.lower_bound(0); by_number_.at(at) != nullptr; at = by_number_.next(at))
      positions.push_back(by_number_.at(at)->position());
    std::ranges::sort(positions);
    for (const DuePosition& position : positions) by_due_.insert({position});
    is_loading_ = false;
  }

 private:
  SortedBlocks<WaitingMessage> by_number_;
  Walk::Entries by_due_;
  std::uint64_t bytes_ = 0;
  bool is_loading_ = false;
};

}  // namespace lightq::broker
