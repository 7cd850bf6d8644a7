/// Parts of suite `delivery` that compare a feature with plain consumption by a group. Layer: bench.
///
/// Each row is one function. A row of another feature is one more function here, with the topic, group or
/// messages that the feature needs, and one more part.
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "delivery/delivery_suite.hpp"
#include "support/load/group_stream.hpp"

namespace lightq::bench {
namespace {

constexpr int group_rounds = 5;
constexpr std::size_t group_message_bytes = 100;
constexpr double group_payload_bytes = 1e9;
constexpr const char* limited_group = "workers";
constexpr double group_payload_bytes_quick = 100e6;

/// A stream, and where it runs.
struct GroupSide {
  const BrokerRoute& route;
  GroupWork work = {};
};

StreamPlan group_plan(const DeliveryOptions& options) {
  StreamPlan plan;
  const double bytes = options.quick ? group_payload_bytes_quick : group_payload_bytes;
  plan.message_bytes = group_message_bytes;
  plan.message_count = static_cast<std::uint64_t>(bytes / static_cast<double>(group_message_bytes));
  plan.time_max = std::chrono::seconds(120);
  return plan;
}

/// Compares two streams in alternating rounds, in million messages a second that are finished.
Row compare_streams(DeliverySuite& suite, const std::string& name, const std::string& title,
                    const GroupSide& ours, const std::string& reference_name, const GroupSide& reference) {
  const StreamPlan plan = group_plan(suite.options());
  const auto stream = [&plan](const GroupSide& side) {
    return [&plan, &side] {
      return run_group_stream(session_ends_of(side.route), plan, side.work)
                 .value_or_throw()
                 .messages_per_second /
             1e6;
    };
  };
  const auto pairs =
      DeliverySuite::alternate(suite.options().rounds(group_rounds), stream(ours), stream(reference));
  return compare(name, title + ", 100 B", "million msg/s", Better::more, pairs.ours, reference_name,
                 pairs.reference);
}

std::unique_ptr<BrokerRoute> group_topic(const DeliverySuite& suite, const std::string& label,
                                         const std::vector<std::string>& flags = {},
                                         const nlohmann::json& settings = {{"broker_type", "queue"}}) {
  auto route = BrokerRoute::start(suite.options().broker_binary, settings, flags).value_or_throw();
  route->prepare(label).value_or_throw();
  return route;
}

// --- Rows ---

Row retry_once(DeliverySuite& suite, const BrokerRoute& route) {
  return compare_streams(suite, "retry_once", "each message rejected once, and delivered again",
                         {route, {.rejects_one_of = 1}}, "each message acknowledged", {route});
}

Row retry_one_in_ten(DeliverySuite& suite, const BrokerRoute& route) {
  return compare_streams(suite, "retry_one_in_ten", "one message of ten rejected once, and delivered again",
                         {route, {.rejects_one_of = 10}}, "each message acknowledged", {route});
}

Row retry_batches(DeliverySuite& suite, const BrokerRoute& route) {
  return compare_streams(suite, "retry_batches", "each batch rejected once, and delivered again",
                         {route, {.rejects_one_of = 1, .whole_batches = true}}, "each batch acknowledged",
                         {route, {.whole_batches = true}});
}

/// Returns a topic of which the group `limited_group` has these settings.
std::unique_ptr<BrokerRoute> limited_topic(const DeliverySuite& suite, const std::string& label,
                                           const nlohmann::json& settings) {
  auto route = group_topic(suite, label);
  route->set_group(limited_group, settings).value_or_throw();
  return route;
}

Row attempts(DeliverySuite& suite, const BrokerRoute& limited, const BrokerRoute& plain) {
  return compare_streams(suite, "attempts", "a group with a limit of attempts and a back-off, none fails",
                         {limited, {.group = limited_group}}, "a group without settings",
                         {plain, {.group = limited_group}});
}

Row backoff(DeliverySuite& suite, const BrokerRoute& limited, const BrokerRoute& plain) {
  return compare_streams(suite, "backoff",
                         "each message rejected once, and delivered again after a back-off of 10 ms",
                         {limited, {.rejects_one_of = 1, .group = limited_group}},
                         "each message acknowledged", {plain, {.group = limited_group}});
}

Row delay(DeliverySuite& suite, const std::string& name, const std::string& title, const BrokerRoute& delayed,
          const BrokerRoute& plain) {
  return compare_streams(suite, name, "each message delayed by 10 ms, " + title,
                         {delayed, {.delay = std::chrono::milliseconds(10)}}, "messages without a delay",
                         {plain});
}

Row topic_ttl(DeliverySuite& suite, const BrokerRoute& living, const BrokerRoute& plain) {
  return compare_streams(suite, "ttl", "a topic with a time to live, none expires", {living},
                         "a topic without one", {plain});
}

/// Compares with a header of the same length that has no meaning.
Row own_ttl(DeliverySuite& suite, const BrokerRoute& living, const BrokerRoute& plain) {
  return compare_streams(suite, "ttl_own", "each message with a time to live of its own, none expires",
                         {living, {.header_name = "lightq-ttl-ms", .header_value = "3600000"}},
                         "each message with another header",
                         {plain, {.header_name = "another-title", .header_value = "3600000"}});
}

/// Compares with a broker that gives no leases, because it has no heartbeat.
Row leases(DeliverySuite& suite, const BrokerRoute& with, const BrokerRoute& without) {
  return compare_streams(suite, "leases", "a group's consumer with leases", {with}, "without leases",
                         {without});
}

}  // namespace

void measure_retry(DeliverySuite& suite) {
  const auto route = group_topic(suite, "retry");
  suite.add(retry_once(suite, *route));
  suite.add(retry_one_in_ten(suite, *route));
  suite.add(retry_batches(suite, *route));
}

void measure_attempts(DeliverySuite& suite) {
  const nlohmann::json settings{{"max_attempts", 5}, {"backoff_ms", {10}}};
  const auto plain = group_topic(suite, "plain");
  const auto limited = limited_topic(suite, "limited", settings);
  suite.add(attempts(suite, *limited, *plain), 0.95, 0.85);
  suite.add(backoff(suite, *limited, *plain), 0.5, 0.35);
}

void measure_delay(DeliverySuite& suite) {
  const auto plain = group_topic(suite, "undelayed");
  const auto delayed = group_topic(suite, "delayed");
  suite.add(delay(suite, "delay", "transient", *delayed, *plain), 0.5, 0.35);
  // With retention, so that the files do not grow. The group keeps messages that it has not received.
  const nlohmann::json durable{
      {"broker_type", "file"}, {"retention_bytes", 256 << 20}, {"segment_bytes", 64 << 20}};
  const auto plain_durable = group_topic(suite, "undelayed", {}, durable);
  const auto delayed_durable = group_topic(suite, "delayed", {}, durable);
  suite.add(delay(suite, "delay_file", "durable", *delayed_durable, *plain_durable));
}

void measure_ttl(DeliverySuite& suite) {
  const auto plain = group_topic(suite, "plain");
  const auto living =
      group_topic(suite, "living", {}, {{"broker_type", "queue"}, {"message_ttl_ms", 3'600'000}});
  suite.add(topic_ttl(suite, *living, *plain), 0.9, 0.8);
  const auto own = group_topic(suite, "own");
  suite.add(own_ttl(suite, *own, *plain), 0.9, 0.8);
}

void measure_leases(DeliverySuite& suite) {
  const auto with = group_topic(suite, "leases");
  const auto without = group_topic(suite, "no-leases", {"--session-heartbeat-ms", "0"});
  suite.add(leases(suite, *with, *without));
}

}  // namespace lightq::bench
