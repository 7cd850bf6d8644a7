/// Saves a topic's table of known producers. Layer: topic.
#pragma once

#include <cstdint>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

#include "delivery/producers/durable_producers.hpp"
#include "store/topic_store.hpp"
#include "topic/runtime/topic_activity.hpp"
#include "topic/runtime/topic_producers.hpp"
#include "topic/runtime/topic_reports.hpp"

namespace lightq::broker {

/// Saves the table of known producers, admits or ends the producers that wait for a save, and keeps the
/// files that a start needs to restore the table. TopicSaves owns it and calls it.
/// Thread: the reactor's.
class ProducerSaves {
 public:
  /// Lifetime: all of them outlive this.
  struct Parts {
    TopicStore& store;
    DurableProducers& known;
    TopicProducers& producers;
    TopicActivity& activity;
    TopicReports& reports;
  };

  explicit ProducerSaves(const Parts& parts) : parts_(parts) {}

  /// Admits producers after their ids are saved. If the disk fails, ends the producers that wait to be
  /// admitted, or for their batches to become durable, and returns the error.
  const Error* admit();
  /// Saves the producers if a save is due.
  void save(Timestamp now);
  /// Called when a save has ended. Ends the producers that waited for it if it has failed.
  void saved(const Result<void>& result);
  /// Saves the producers before it returns, if a save is due. For a stop.
  void save_for_stop();
  /// Keeps the files of messages that retention or the capacity has dropped until the saved producers do not
  /// depend on them, and hurries the save if many bytes wait.
  void hurry();

 private:
  void end_waiting(const Error& error);

  const Parts parts_;
  bool lack_space_ = false;           // the last save found no space
  std::uint64_t hurried_change_ = 0;  // the change of the producers that dropped segments wait for
};

}  // namespace lightq::broker
