/// A topic's storage in memory, which ends with the broker. Layer: store.
#pragma once

#include <cassert>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "log/memory/ring_log.hpp"
#include "store/log_store.hpp"

namespace lightq::broker {

/// Keeps messages in a ring in memory, and no state. All functions finish at once.
class MemoryStore final : public LogStore<log::RingLog> {
 public:
  /// `carried`: see LogStore.
  explicit MemoryStore(std::unique_ptr<log::RingLog> log,
                       std::unique_ptr<log::CarriedRecords> carried = nullptr)
      : LogStore(std::move(log), std::move(carried)) {}

  void report_to(StoreEvents& /*events*/) override {}
  [[nodiscard]] bool is_durable() const override { return false; }
  void save_consumers(MakeCursors /*cursors*/) override { assert(false); }
  [[nodiscard]] std::int64_t consumers_encoding_us() const override { return 0; }
  void save_producers(log::SlotBytes /*producers*/) override { assert(false); }
  Result<void> save_consumers_now(const MakeCursors& /*cursors*/) override { return {}; }
  Result<void> save_producers_now(log::SlotBytes /*producers*/) override { return {}; }
  void keep_dropped_from(Offset /*from*/) override {}
  [[nodiscard]] DroppedMessages dropped() const override { return {}; }
  bool maintain(Timestamp now) override {
    log().maintain(now);
    return false;
  }
  bool write_behind(Timestamp /*now*/) override { return false; }
  void start_work(Timestamp /*now*/) override {}
  [[nodiscard]] bool wants_work() const override { return log().wants_disk_work(); }
  void request_flush(Offset /*end*/) override {}
  [[nodiscard]] const Error* write_fault() const override { return nullptr; }
  [[nodiscard]] const Error* sync_fault() const override { return nullptr; }
  [[nodiscard]] bool is_idle() const override { return true; }
  void when_idle(std::function<void()> /*call*/) override { assert(false); }  // it is always idle
  Result<void> destroy() override { return {}; }
};

}  // namespace lightq::broker
