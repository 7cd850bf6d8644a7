/// A log whose batches can be read only some time after they were asked for, and not in the order of asking.
#pragma once

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "log/log.hpp"
#include "support/random.hpp"

namespace lightq::test {

/// Answers reads as a store on another machine does: first `pending`, and the batch only after `arrive`. A
/// batch that was read may be away again later. Everything else answers at once, as TopicStore requires.
class LateLog final : public log::BatchLog {
 public:
  explicit LateLog(std::unique_ptr<log::BatchLog> log) : log_(std::move(log)) {}

  /// Lets some of the batches arrive that were asked for, the newest first. Returns false if none was asked
  /// for.
  bool arrive() {
    std::erase_if(here_, [&](std::uint64_t base) { return read_.contains(base) && random_.one_in(2); });
    read_.clear();
    if (asked_.empty()) return false;
    do {
      const auto newest = std::prev(asked_.end());
      here_.insert(*newest);
      asked_.erase(newest);
    } while (!asked_.empty() && random_.one_in(2));
    return true;
  }
  /// Lets all batches be read at once from now on, for tests of a single dispatch.
  void answer_at_once() { at_once_ = true; }

  log::ReadResult read(log::ReadPosition& place) override {
    log::ReadPosition at = place;
    const log::ReadResult result = log_->read(at);
    if (result.outcome != log::ReadOutcome::batch) return result;
    const std::uint64_t base = result.batch.base_offset().value;
    if (!at_once_ && !here_.contains(base)) {
      asked_.insert(base);
      return {log::ReadOutcome::pending, {}, place.offset};
    }
    read_.insert(base);
    place = at;
    return result;
  }

  log::AppendResult append(std::span<std::byte> batch, Timestamp now) override {
    return log_->append(batch, now);
  }
  std::span<std::byte> place_for_next(std::size_t bytes) override { return log_->place_for_next(bytes); }
  log::ReadResult read_header(log::ReadPosition& place) override { return log_->read_header(place); }
  log::FoundByTime first_since(Timestamp time) override { return log_->first_since(time); }
  [[nodiscard]] Offset first_offset() const override { return log_->first_offset(); }
  [[nodiscard]] Offset next_offset() const override { return log_->next_offset(); }
  [[nodiscard]] Offset durable_offset() const override { return log_->durable_offset(); }
  [[nodiscard]] std::uint64_t stored_bytes() const override { return log_->stored_bytes(); }
  [[nodiscard]] std::uint64_t held_bytes() const override { return log_->held_bytes(); }
  void trim(Offset before) override { log_->trim(before); }
  Result<void> end_segment() override { return log_->end_segment(); }
  void drop_before(Offset before) override { log_->drop_before(before); }
  bool make_room(std::size_t bytes, Offset limit) override { return log_->make_room(bytes, limit); }
  bool drop_first(Offset limit, std::size_t bytes) override { return log_->drop_first(limit, bytes); }
  [[nodiscard]] const Error& last_error() const override { return log_->last_error(); }

 private:
  std::unique_ptr<log::BatchLog> log_;
  Random random_{1};
  std::set<std::uint64_t> asked_;  // base offsets of batches
  std::set<std::uint64_t> here_;
  std::set<std::uint64_t> read_;  // since the last `arrive`
  bool at_once_ = false;
};

}  // namespace lightq::test
