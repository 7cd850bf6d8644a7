/// The log lines about a topic at work. Layer: topic.
#pragma once

#include <cstdint>
#include <string>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

#include "base/log_sink.hpp"
#include "delivery/topic.hpp"
#include "store/topic_store.hpp"

namespace lightq::broker {

/// Writes log lines when something begins to fail and when it works again, each once. The topic's parts call
/// it. Thread: the reactor's.
class TopicReports {
 public:
  /// `message_bytes_max`: for the lines about refused messages. Lifetime: the references outlive this.
  TopicReports(LogSink& sink, Topic& topic, const TopicStore& store, std::uint64_t message_bytes_max)
      : sink_(sink), topic_(topic), store_(store), message_bytes_max_(message_bytes_max) {}

  /// Called after each append: reports when appends begin to fail for lack of a disk and when they work
  /// again.
  void appended(PublishOutcome outcome) {
    if (outcome != PublishOutcome::accepted || warned_of_disk_) report_append(outcome);
  }
  /// Reports damaged and refused messages: at most one line of each kind in 5 s, however many messages it
  /// counts.
  void losses(Timestamp now);
  /// Reports when delivery begins to wait for unavailable messages, and when it no longer waits.
  void unavailable();
  /// Reports when messages that wait begin not to be carried over, and when they are again: at most one line
  /// in 5 s.
  void carried(Timestamp now);
  /// Reports when the store begins to keep messages in memory and when they are written again.
  void health();
  void sync_failed(const Error& error);
  /// Reports that a save of the producers has failed, if the save before did not.
  void producers_saved(const Result<void>& result);
  void cursors_not_saved(const Error& error);
  /// Reports that dropped files are removed before the producers are saved. The next report follows after
  /// kept_dropped().
  void dropping_too_fast();
  void kept_dropped() { told_of_dropped_ = false; }
  void not_flushed(const Error& error);

 private:
  [[nodiscard]] std::string where() const { return "topic " + topic_.definition().name.text() + ": "; }
  void report_append(PublishOutcome outcome);

  LogSink& sink_;
  Topic& topic_;
  const TopicStore& store_;
  const std::uint64_t message_bytes_max_;
  bool warned_of_disk_ = false;
  bool warned_of_unavailable_ = false;
  bool warned_of_carried_ = false;
  bool told_of_failed_sync_ = false;
  bool told_of_dropped_ = false;
  bool producers_failed_ = false;
  Timestamp losses_reported_;
  Timestamp carried_reported_;
  std::uint64_t damaged_reported_ = 0;
  std::uint64_t refused_reported_ = 0;
};

}  // namespace lightq::broker
