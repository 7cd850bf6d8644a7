/// The work of a topic with its store: saves, flushes, purges, and the store's reports. Layer: topic.
#pragma once

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

#include "store/topic_store.hpp"
#include "topic/runtime/cursor_saves.hpp"
#include "topic/runtime/producer_saves.hpp"
#include "topic/runtime/topic_activity.hpp"
#include "topic/runtime/topic_producers.hpp"
#include "topic/runtime/topic_purges.hpp"
#include "topic/runtime/topic_reads.hpp"
#include "topic/runtime/topic_reports.hpp"

namespace lightq::broker {

/// Receives the reports of the store, and starts the work on it that is due after each of them, after each
/// dispatch and at each tick. Owns the saves of producers and cursors, and the purges. Thread: the reactor's.
class TopicSaves final : public StoreEvents {
 public:
  /// Lifetime: all of them outlive this.
  struct Parts {
    TopicStore& store;
    DurableProducers& known;
    TopicProducers& producers;
    WaitingProducers& held;
    TopicReads& reads;
    TopicActivity& activity;
    TopicReports& reports;
    Latencies& latencies;
  };

  TopicSaves(const Parts& parts, const CursorSaves::Parts& cursors, const FoundTopic& found);

  [[nodiscard]] CursorSaves& cursors() { return cursors_; }
  [[nodiscard]] TopicPurges& purges() { return purges_; }

  /// Called after each dispatch.
  void after_dispatch(Timestamp now);
  /// Called at each tick.
  void tick(Timestamp now);
  /// Returns true if another tick is wanted, even if nothing else happens.
  [[nodiscard]] bool wants_ticks() const;
  /// Answers all commands that wait for a save.
  void end_commands(const Error& why);
  /// Saves the log, the producers and the cursors, and closes the log. Blocks this thread.
  void flush_for_stop();

  /// Returns the end of the part that a dispatch uses. The part starts with the object.
  [[nodiscard]] const void* hot_end() const { return cursors_.hot_end(); }

  // Implements StoreEvents.
  void on_durable() override;
  void on_flushed(std::chrono::microseconds took) override { parts_.latencies.flush.record(took.count()); }
  void on_readable() override;
  void on_saved(StoredState what, const Result<void>& result) override;
  void on_health() override { parts_.reports.health(); }

 private:
  void save_producers(Timestamp now);
  void start_work(Timestamp now);
  void producers_saved(const Result<void>& result);

  // A dispatch uses these up to the first part of cursors_: hot_end() depends on this order.
  const Parts parts_;
  ProducerSaves producers_;
  Offset durable_known_;  // the durable offset that waiting producers know
  CursorSaves cursors_;
  TopicPurges purges_;
};

}  // namespace lightq::broker
