/// A topic's storage in memory, written behind to files (`queue_file`). Layer: store.
#pragma once

#include <memory>
#include <utility>

#include "log/memory/write_behind_log.hpp"
#include "store/durable_store.hpp"

namespace lightq::broker {

/// Keeps messages in a ring in front of segment files. Watches the writing: if nothing could be written for a
/// second although messages wait, it reports a fault and tries only once a second, because an attempt that
/// fails may be slow. Thread: the reactor's.
class TieredStore final : public DurableStore<log::WriteBehindLog> {
 public:
  /// `segments`: the tail of `log`. Lifetime: `disk` and `loop` outlive this.
  TieredStore(std::unique_ptr<log::WriteBehindLog> log, log::SegmentLog& segments, StateFiles files,
              DiskThread& disk, EventLoop& loop, std::unique_ptr<log::CarriedLog> carried = nullptr)
      : DurableStore(std::move(log), segments, std::move(files), disk, loop, std::move(carried)) {}

  bool maintain(Timestamp now) override;
  bool write_behind(Timestamp now) override { return maintain(now); }
  /// Writes all messages first. May call StoreEvents::on_health.
  Result<void> end_segment() override;
  [[nodiscard]] bool wants_work() const override { return is_behind() || DurableStore::wants_work(); }
  [[nodiscard]] const Error* write_fault() const override {
    return writing_fails_ ? &log().last_error() : nullptr;
  }

 private:
  /// Returns true if messages are only in memory.
  [[nodiscard]] bool is_behind() const { return log().written_offset() < log().next_offset(); }
  void watch_writing(Offset written_before, Timestamp now);

  bool writing_fails_ = false;
  Timestamp behind_since_;  // since when nothing was written; 0: nothing waits
  Timestamp write_again_;   // while writing_fails_: the next attempt is not before
};

}  // namespace lightq::broker
