/// The delayed messages that wait, in memory: by number and by due time. Layer: delayed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
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

  [[nodiscard]] DuePosition position() const { return {due_us, number}; }
};

/// Messages that wait with ascending numbers without a gap, equal due times and equal lengths.
struct WaitingRun {
  std::uint64_t number = 0;  ///< of the first message
  std::int64_t due_us = 0;   ///< of each, in microseconds since 1970
  std::uint64_t place = 0;   ///< of the first one's content; see WaitingIndex for the others
  std::uint32_t bytes = 0;   ///< of each
  std::uint32_t count = 1;   ///< of messages, at least 1

  [[nodiscard]] std::uint64_t key() const { return number; }
  /// Returns the number behind the last one.
  [[nodiscard]] std::uint64_t end() const { return number + count; }
  [[nodiscard]] DuePosition position() const { return {due_us, number}; }
  [[nodiscard]] WaitingMessage first() const { return {number, due_us, place, bytes}; }
};

/// Finds waiting messages by number, and walks them in the order in which they become due. Keeps one entry
/// for each run in both orders: 48 to 60 bytes. A change of some messages of a run divides it. Neighbours
/// that fit are joined when one of them is added, or gets another due time or place. Example: 5 to 9 are due
/// at noon. After 7 gets another time, the runs are 5 to 6, 7, and 8 to 9. Thread: one.
class WaitingIndex {
 public:
  /// The places of neighbours in one run.
  enum class Places : std::uint8_t {
    ascending,  ///< each is one above that of the message before
    equal,
  };
  explicit WaitingIndex(Places places = Places::ascending) : place_step_(places == Places::equal ? 0U : 1U) {}

  /// Returns the number of messages.
  [[nodiscard]] std::size_t size() const { return messages_; }
  [[nodiscard]] bool empty() const { return messages_ == 0; }
  [[nodiscard]] std::size_t runs() const { return by_number_.size(); }
  /// Returns the sum of all messages' bytes.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::size_t memory_bytes() const {
    return by_number_.memory_bytes() + by_due_.memory_bytes();
  }

  // Changes. Each throws std::bad_alloc; nothing has changed then, apart from where runs begin.

  /// Adds messages. Requires: none of their numbers is there.
  void add(const WaitingRun& run) {
    WaitingRun* const before = run.number == 0 ? nullptr : run_of(run.number - 1);
    if (before != nullptr && continues(*before, run)) {
      before->count += run.count;
    } else {
      insert(run);
    }
    messages_ += run.count;
    bytes_ += std::uint64_t{run.bytes} * run.count;
  }
  /// Removes `count` messages from `number` on. Requires: one run has all of them.
  void remove(std::uint64_t number, std::uint32_t count) {
    cut(number);
    WaitingRun* const run = by_number_.find(number);
    messages_ -= count;
    bytes_ -= std::uint64_t{run->bytes} * count;
    if (count == run->count) return erase(run->position());
    if (!is_loading_) by_due_.find(run->position())->position.number += count;
    *run = rest_of(*run, count);
  }
  /// Changes the due time of `count` messages from `number` on. Requires: one run has all of them.
  void set_due(std::uint64_t number, std::uint32_t count, std::int64_t due_us) {
    cut_out(number, count);
    const DuePosition before = by_number_.find(number)->position();
    if (!is_loading_ && before.due_us != due_us) {
      by_due_.insert({{due_us, number}});
      by_due_.erase(before);
    }
    by_number_.find(number)->due_us = due_us;
    join(number);
    join(number + count);
  }
  /// Changes the place of the content of `count` messages from `number` on. Requires: one run has all of
  /// them.
  void set_place(std::uint64_t number, std::uint32_t count, std::uint64_t place) {
    cut_out(number, count);
    by_number_.find(number)->place = place;
    join(number);
  }

  // Searches.

  [[nodiscard]] std::optional<WaitingMessage> find(std::uint64_t number) const {
    const WaitingRun* const run = run_of(number);
    if (run == nullptr) return std::nullopt;
    return rest_of(*run, number - run->number).first();
  }
  /// Returns the messages of one run from this number on, or from the next higher one.
  [[nodiscard]] std::optional<WaitingRun> from_number(std::uint64_t number) const {
    if (const WaitingRun* const run = run_of(number)) return rest_of(*run, number - run->number);
    const WaitingRun* const next = by_number_.at(by_number_.lower_bound(number));
    return next == nullptr ? std::nullopt : std::optional(*next);
  }

 private:
  struct ByDue {
    DuePosition position;  // of a run's first message
    [[nodiscard]] DuePosition key() const { return position; }
  };
  using DueOrder = SortedBlocks<ByDue>;

 public:
  /// Walks in the order of due times. Requires: no change meanwhile, and load_end was called.
  class Walk {
   public:
    /// Returns the position of the message, or null at the end.
    [[nodiscard]] const DuePosition* get() const { return is_at_end_ ? nullptr : &position_; }
    /// Returns the message and those that follow in its run. Requires: not at the end.
    [[nodiscard]] const WaitingRun& run() const { return run_; }
    void next() {
      if (run_.count == 1) return next_run();
      begin_at(index_->rest_of(run_, 1));
    }
    /// Goes to the first message of the next run.
    void next_run() {
      entry_ = index_->by_due_.next(entry_);
      load();
    }

   private:
    friend class WaitingIndex;
    Walk(const WaitingIndex& index, DueOrder::Place entry) : index_(&index), entry_(entry) { load(); }
    void load() {
      const ByDue* const entry = index_->by_due_.at(entry_);
      is_at_end_ = entry == nullptr;
      if (!is_at_end_) begin_at(*index_->by_number_.find(entry->position.number));
    }
    void begin_at(const WaitingRun& run) {
      run_ = run;
      position_ = run.position();
    }
    const WaitingIndex* index_;
    DueOrder::Place entry_;
    WaitingRun run_;  // from the message on
    DuePosition position_;
    bool is_at_end_ = false;
  };
  /// Walks from the first message at or behind `from`.
  [[nodiscard]] Walk walk(DuePosition from = {}) const {
    const auto before = by_due_.at_or_below(from);
    if (!before) return {*this, {}};
    Walk found(*this, *before);
    const WaitingRun run = found.run_;
    if (run.due_us != from.due_us || run.end() <= from.number) {
      found.next_run();
    } else {
      found.begin_at(rest_of(run, from.number - run.number));
    }
    return found;
  }
  /// Returns the position of the first message, or null.
  [[nodiscard]] const DuePosition* first() const {
    const ByDue* const entry = by_due_.first();
    return entry == nullptr ? nullptr : &entry->position;
  }

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
  /// Returns a run without its first messages. Requires: at least one remains.
  [[nodiscard]] WaitingRun rest_of(const WaitingRun& run, std::uint64_t messages) const {
    WaitingRun rest = run;
    rest.number += messages;
    rest.place += messages * place_step_;
    rest.count -= static_cast<std::uint32_t>(messages);
    return rest;
  }
  /// Returns true if `next` follows `run` directly, and both can be one run.
  [[nodiscard]] bool continues(const WaitingRun& run, const WaitingRun& next) const {
    return run.end() == next.number && run.due_us == next.due_us && run.bytes == next.bytes &&
           run.place + run.count * place_step_ == next.place &&
           next.count <= std::numeric_limits<std::uint32_t>::max() - run.count;
  }
  /// Returns the run that has this number, or null.
  [[nodiscard]] const WaitingRun* run_of(std::uint64_t number) const {
    const auto place = by_number_.at_or_below(number);
    if (!place) return nullptr;
    const WaitingRun* const run = by_number_.at(*place);
    return number < run->end() ? run : nullptr;
  }
  [[nodiscard]] WaitingRun* run_of(std::uint64_t number) {
    return const_cast<WaitingRun*>(std::as_const(*this).run_of(number));
  }
  void insert(const WaitingRun& run) {
    by_number_.insert(run);
    try {
      if (!is_loading_) by_due_.insert({run.position()});
    } catch (...) {
      by_number_.erase(run.number);
      throw;
    }
  }
  void erase(DuePosition position) {
    if (!is_loading_) by_due_.erase(position);
    by_number_.erase(position.number);
  }
  /// Divides the run that has this number, so that one begins with it.
  void cut(std::uint64_t number) {
    const WaitingRun* const found = run_of(number);
    if (found == nullptr || found->number == number) return;
    const std::uint64_t first = found->number;
    insert(rest_of(*found, number - first));
    by_number_.find(first)->count = static_cast<std::uint32_t>(number - first);
  }
  /// Makes a run of these messages alone.
  void cut_out(std::uint64_t number, std::uint32_t count) {
    cut(number);
    cut(number + count);
  }
  /// Joins the run that begins with this number, if there is one, with the one before if they fit.
  void join(std::uint64_t number) {
    const WaitingRun* const found = by_number_.find(number);
    if (found == nullptr || number == 0) return;
    const WaitingRun run = *found;
    WaitingRun* const before = run_of(number - 1);
    if (before == nullptr || !continues(*before, run)) return;
    before->count += run.count;
    erase(run.position());
  }

  std::uint64_t place_step_;
  SortedBlocks<WaitingRun> by_number_;
  DueOrder by_due_;
  std::size_t messages_ = 0;
  std::uint64_t bytes_ = 0;
  bool is_loading_ = false;
};

}  // namespace lightq::broker
