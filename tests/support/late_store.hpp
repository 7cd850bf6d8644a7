/// A store whose batches can be read only some time after they were asked for, and not in the order of
/// asking.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "store/topic_store.hpp"
#include "support/late_log.hpp"

namespace lightq::test {

/// Reads late, as LateLog does. Everything else is that of the store behind it.
class LateStore final : public broker::TopicStore {
 public:
  explicit LateStore(std::unique_ptr<broker::TopicStore> store) : store_(*store), log_(std::move(store)) {}

  /// Lets some batches arrive, and reports that. Returns false if none was asked for.
  bool arrive() {
    const bool any = log_.arrive();
    if (any) events_->on_readable();
    return any;
  }

  log::AppendResult append(std::span<std::byte> batch, Timestamp now) override {
    return log_.append(batch, now);
  }
  std::span<std::byte> place_for_next(std::size_t bytes) override { return log_.place_for_next(bytes); }
  log::ReadResult read(log::ReadPosition& place) override { return log_.read(place); }
  log::ReadResult read_header(log::ReadPosition& place) override { return log_.read_header(place); }
  log::FoundByTime first_since(Timestamp time) override { return log_.first_since(time); }
  [[nodiscard]] Offset first_offset() const override { return log_.first_offset(); }
  [[nodiscard]] Offset next_offset() const override { return log_.next_offset(); }
  [[nodiscard]] Offset durable_offset() const override { return log_.durable_offset(); }
  [[nodiscard]] std::uint64_t stored_bytes() const override { return log_.stored_bytes(); }
  [[nodiscard]] std::uint64_t held_bytes() const override { return log_.held_bytes(); }
  void trim(Offset before) override { log_.trim(before); }
  Result<void> end_segment() override { return log_.end_segment(); }
  void drop_before(Offset before) override { log_.drop_before(before); }
  bool make_room(std::size_t bytes, Offset limit) override { return log_.make_room(bytes, limit); }
  bool drop_first(Offset limit, std::size_t bytes) override { return log_.drop_first(limit, bytes); }
  [[nodiscard]] const Error& last_error() const override { return log_.last_error(); }

  void report_to(broker::StoreEvents& events) override {
    events_ = &events;
    store_.report_to(events);
  }
  [[nodiscard]] bool is_durable() const override { return store_.is_durable(); }
  void save_consumers(MakeCursors cursors) override { store_.save_consumers(std::move(cursors)); }
  [[nodiscard]] std::int64_t consumers_encoding_us() const override { return store_.consumers_encoding_us(); }
  void save_producers(log::SlotBytes producers) override { store_.save_producers(std::move(producers)); }
  Result<void> save_consumers_now(const MakeCursors& cursors) override {
    return store_.save_consumers_now(cursors);
  }
  Result<void> save_producers_now(log::SlotBytes producers) override {
    return store_.save_producers_now(std::move(producers));
  }
  void set_limits(const log::LogLimits& limits) override { store_.set_limits(limits); }
  void keep_dropped_from(Offset from) override { store_.keep_dropped_from(from); }
  [[nodiscard]] broker::DroppedMessages dropped() const override { return store_.dropped(); }
  bool maintain(Timestamp now) override { return store_.maintain(now); }
  bool write_behind(Timestamp now) override { return store_.write_behind(now); }
  void start_work(Timestamp now) override { store_.start_work(now); }
  [[nodiscard]] bool wants_work() const override { return store_.wants_work(); }
  void request_flush(Offset end) override { store_.request_flush(end); }
  [[nodiscard]] const Error* write_fault() const override { return store_.write_fault(); }
  [[nodiscard]] const Error* sync_fault() const override { return store_.sync_fault(); }
  [[nodiscard]] bool is_idle() const override { return store_.is_idle(); }
  void when_idle(std::function<void()> call) override { store_.when_idle(std::move(call)); }
  Result<void> flush() override { return store_.flush(); }
  Result<void> close() override { return store_.close(); }
  Result<void> destroy() override { return store_.destroy(); }

 private:
  broker::TopicStore& store_;
  LateLog log_;  // owns the store
  broker::StoreEvents* events_ = nullptr;
};

}  // namespace lightq::test
