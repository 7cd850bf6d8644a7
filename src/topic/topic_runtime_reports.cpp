/// The log lines about a topic at work. Layer: topic.
#include <utility>

#include "log/elapsed.hpp"
#include "topic/topic_runtime.hpp"

namespace lightq::broker {

namespace {

constexpr std::int64_t loss_report_interval_us = 5'000'000;

}  // namespace

/// Logs damaged and refused messages: at most one line of each kind in 5 s, however many messages it counts.
void TopicRuntime::report_losses(Timestamp now) {
  if (!log::has_passed(losses_reported_, loss_report_interval_us, now)) return;
  const auto stats = topic_.stats();
  const std::string where = "topic " + definition().name.text() + ": ";
  if (stats.corrupt > damaged_reported_) {
    context_.sink.error(where + std::to_string(stats.corrupt - damaged_reported_) +
                        " messages cannot be read and were skipped: " + topic_.log().last_error().text());
  }
  if (stats.refused > refused_reported_) {
    context_.sink.warn(
        where + std::to_string(stats.refused - refused_reported_) +
        " messages were refused, because they have several parts or are too large (message_bytes_max is " +
        std::to_string(message_bytes_max()) + ")");
  }
  damaged_reported_ = stats.corrupt;
  refused_reported_ = stats.refused;
  losses_reported_ = now;
}

/// Logs when delivery begins to wait for unavailable messages, and when it no longer waits.
void TopicRuntime::report_unavailable() {
  const Error* const why = topic_.unavailable();
  if (std::exchange(warned_of_unavailable_, why != nullptr) == (why != nullptr)) return;
  const std::string where = "topic " + definition().name.text() + ": ";
  if (why == nullptr)
    return context_.sink.info(where + "no consumer waits for unavailable messages any more");
  context_.sink.error(where + "consumers wait, because their messages cannot be read now: " + why->text());
}

}  // namespace lightq::broker
