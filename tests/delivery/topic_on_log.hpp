/// A topic with its log, for tests of delivery. The tests are built twice: with a log that answers at once,
/// and, if LIGHTQ_LATE_LOG is defined, with one that answers late and out of order.
#pragma once

#include <memory>
#include <utility>

#include "delivery/topic.hpp"
#include "log/memory/ring_log.hpp"
#include "support/late_log.hpp"

namespace lightq::test {

/// Owns the log of a TopicOnLog.
struct LogOfTopic {
#if defined(LIGHTQ_LATE_LOG)
  explicit LogOfTopic(std::unique_ptr<log::BatchLog> log) : log_of_topic(std::move(log)) {}
  bool arrive() { return log_of_topic.arrive(); }
  void answer_at_once() { log_of_topic.answer_at_once(); }
  log::BatchLog& log_to_use() { return log_of_topic; }
  LateLog log_of_topic;
#else
  explicit LogOfTopic(std::unique_ptr<log::BatchLog> log) : log_of_topic(std::move(log)) {}
  static bool arrive() { return false; }
  static void answer_at_once() {}
  log::BatchLog& log_to_use() { return *log_of_topic; }
  std::unique_ptr<log::BatchLog> log_of_topic;
#endif
};

class TopicOnLog : private LogOfTopic, public broker::Topic {
 public:
  TopicOnLog(broker::TopicDefinition definition, std::unique_ptr<log::BatchLog> log, Timestamp since,
             const broker::GroupLimits& limits = {}, broker::RangeBudget* budget = nullptr)
      : LogOfTopic(std::move(log)), Topic(std::move(definition), log_to_use(), since, limits, budget) {}
  TopicOnLog(broker::TopicDefinition definition, std::uint64_t ring_bytes, Timestamp since,
             const broker::GroupLimits& limits = {}, broker::RangeBudget* budget = nullptr)
      : TopicOnLog(std::move(definition),
                   std::make_unique<log::RingLog>(log::RingLogOptions{.capacity_bytes = ring_bytes}), since,
                   limits, budget) {}

  /// Lets the log answer at once, for a test of a single call of `dispatch`.
  using LogOfTopic::answer_at_once;
  /// Dispatches as Topic::dispatch does, until no batch is pending.
  DispatchResult dispatch(const broker::DeliveryContext& context = {}) {
    DispatchResult result = Topic::dispatch(context);
    while (arrive()) {
      const DispatchResult again = Topic::dispatch(context);
      result.more = again.more;
      result.progress |= again.progress;
      result.held_back += again.held_back;
    }
    return result;
  }
};

}  // namespace lightq::test
