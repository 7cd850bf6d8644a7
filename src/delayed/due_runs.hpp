/// Walks over the messages of a producer's batch, run by run. Layer: delayed.
#pragma once

#include <cstddef>
#include <cstdint>

#include <lightq/base/batch.hpp>
#include <lightq/base/types.hpp>

#include "delayed/delayed_bodies.hpp"
#include "delayed/delayed_message.hpp"
#include "delayed/waiting_index.hpp"

namespace lightq::broker {

/// Divides a batch of delayed messages into runs: neighbours with equal due times and equal lengths. Example:
/// of five messages of 100 B, the third of which has a delay of its own, it makes the runs 1 to 2, 3, and 4
/// to 5. `for (DueRuns runs(batch, now); runs.next();) use(runs.run());` Lifetime: the batch outlives it.
class DueRuns {
 public:
  /// `appended`: the append time of the batch. Requires: the batch is not compressed.
  DueRuns(const BatchView& batch, Timestamp appended)
      : left_(batch.records()), has_due_(batch.kinds().has(AttributeKinds::dues)), appended_(appended) {}

  /// Goes to the next run. Returns false if there is none.
  bool next() {
    if (left_.done()) return false;
    index_ += run_.count;
    records_ = left_.message().data() - sizeof(std::uint32_t);
    const std::size_t bytes = left_.message().size();
    const std::int64_t due = due_of(left_);
    run_ = {.due_us = waiting_until(due, appended_).us,
            .bytes = static_cast<std::uint32_t>(bytes - due_bytes()),
            .count = 0};
    do {
      left_.next();
      ++run_.count;
    } while (!left_.done() && left_.message().size() == bytes && is_due_at(due_of(left_), due));
    return true;
  }
  /// Returns the run, without number and place.
  [[nodiscard]] const WaitingRun& run() const { return run_; }
  /// Returns the index of the run's first message in the batch.
  [[nodiscard]] std::uint32_t index() const { return index_; }
  /// Returns the messages of the run, without due times.
  [[nodiscard]] DelayedBodies bodies() const {
    return {.outcome = DelayedBody::Outcome::found,
            .records = records_ + due_bytes(),
            .stride = record_bytes(run_.bytes + due_bytes()),
            .bytes = run_.bytes,
            .count = run_.count};
  }

 private:
  [[nodiscard]] std::size_t due_bytes() const { return has_due_ ? sizeof(std::int64_t) : 0; }
  [[nodiscard]] static std::int64_t due_of(const BatchView::Records& record) {
    return record.attributes().due();
  }
  [[nodiscard]] bool is_due_at(std::int64_t due, std::int64_t first) const {
    return due == first || waiting_until(due, appended_).us == run_.due_us;
  }

  BatchView::Records left_;
  bool has_due_;
  Timestamp appended_;
  WaitingRun run_{.count = 0};
  std::uint32_t index_ = 0;
  const std::byte* records_ = nullptr;
};

}  // namespace lightq::broker
