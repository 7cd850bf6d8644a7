/// The log lines about a topic at work. Layer: topic.
#include "topic/runtime/topic_reports.hpp"

#include "log/elapsed.hpp"

namespace lightq::broker {

namespace {

constexpr std::int64_t loss_report_interval_us = 5'000'000;

}  // namespace

void TopicReports::report_append(PublishOutcome outcome) {
  const bool accepted = outcome == PublishOutcome::accepted;
  if (!accepted && topic_.held_by_disk() && !std::exchange(warned_of_disk_, true)) {
    const char* what = outcome == PublishOutcome::held ? "producers wait" : "messages are rejected";
    sink_.error(where() + what + ", because the log cannot be written: " + topic_.log().last_error().text());
  }
  if (accepted && std::exchange(warned_of_disk_, false)) sink_.info(where() + "the log can be written again");
}

void TopicReports::losses(Timestamp now) {
  if (!log::has_passed(losses_reported_, loss_report_interval_us, now)) return;
  const auto stats = topic_.stats();
  if (stats.corrupt > damaged_reported_) {
    sink_.error(where() + std::to_string(stats.corrupt - damaged_reported_) +
                " messages cannot be read and were skipped: " + topic_.log().last_error().text());
  }
  if (stats.refused > refused_reported_) {
    sink_.warn(
        where() + std::to_string(stats.refused - refused_reported_) +
        " messages were refused, because they have several parts or are too large (message_bytes_max is " +
        std::to_string(message_bytes_max_) + ")");
  }
  damaged_reported_ = stats.corrupt;
  refused_reported_ = stats.refused;
  losses_reported_ = now;
}

void TopicReports::unavailable() {
  const Error* const why = topic_.unavailable();
  if (std::exchange(warned_of_unavailable_, why != nullptr) == (why != nullptr)) return;
  if (why == nullptr) return sink_.info(where() + "no consumer waits for unavailable messages any more");
  sink_.error(where() + "consumers wait, because their messages cannot be read now: " + why->text());
}

void TopicReports::carried(Timestamp now) {
  const Error* const why = topic_.carry_over().fault();
  if (warned_of_carried_ == (why != nullptr)) return;
  if (!log::has_passed(carried_reported_, loss_report_interval_us, now)) return;
  warned_of_carried_ = why != nullptr;
  carried_reported_ = now;
  if (why == nullptr) return sink_.info(where() + "messages that wait are carried over again");
  const char* const then = topic_.definition().settings.overflow == protocol::Overflow::drop_oldest
                               ? "are dropped with the oldest ones"
                               : "keep the log from dropping the oldest ones";
  sink_.error(where() + "messages that wait for a retry, are parked or are dead_waiting " + then +
              ", because they cannot be carried over: " + why->text());
}

void TopicReports::health() {
  const Error* const fault = store_.write_fault();
  if (fault == nullptr) return sink_.info(where() + "its messages are written to the disk again");
  sink_.error(where() + "its messages stay in memory, because the disk cannot be written: " + fault->text());
}

void TopicReports::sync_failed(const Error& error) {
  if (!std::exchange(told_of_failed_sync_, true)) sink_.error(where() + error.text());
}

void TopicReports::producers_saved(const Result<void>& result) {
  const bool failed_before = std::exchange(producers_failed_, !result.ok());
  if (!result && !failed_before) sink_.error(where() + "cannot save its producers: " + result.error().text());
}

void TopicReports::cursors_not_saved(const Error& error) {
  sink_.error(where() + "cannot save its cursors: " + error.text());
}

void TopicReports::dropping_too_fast() {
  if (std::exchange(told_of_dropped_, true)) return;
  sink_.error(where() +
              "messages are dropped faster than its producers can be saved; after a crash the broker may not "
              "know these producers");
}

void TopicReports::not_flushed(const Error& error) {
  sink_.error(where() + "cannot flush its log: " + error.text());
}

}  // namespace lightq::broker
