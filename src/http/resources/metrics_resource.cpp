/// GET /metrics. Layer: http.
#include "http/resources/metrics_resource.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <lightq/protocol/topic_pattern.hpp>

#include "http/problem.hpp"
#include "metrics/broker_metrics.hpp"
#include "metrics/process_metrics.hpp"
#include "metrics/topic_metrics.hpp"

namespace lightq::broker {

namespace {

/// The parameters of a request. docs/http.md describes them.
struct Wanted {
  std::string pattern;  // empty: all topics
  bool detail = true;
  bool zeros = false;
};

Result<bool> switch_of(const Query& query, std::string_view name, bool otherwise) {
  const auto value = query.find(name);
  if (!value) return otherwise;
  if (*value != "on" && *value != "off")
    return Error{ErrorCode::invalid_request, std::string(name) + " must be on or off"};
  return *value == "on";
}

Result<Wanted> wanted_of(const Query& query) {
  constexpr std::array<std::string_view, 3> known = {"topic", "detail", "zeros"};
  if (auto objection = query.objection(known)) return std::move(*objection);
  Wanted wanted;
  const auto detail = switch_of(query, "detail", true);
  if (!detail) return detail.error();
  const auto zeros = switch_of(query, "zeros", false);
  if (!zeros) return zeros.error();
  wanted.detail = *detail;
  wanted.zeros = *zeros;
  if (const auto pattern = query.find("topic")) {
    if (!protocol::is_topic_pattern(*pattern))
      return Error{ErrorCode::invalid_request,
                   "topic must be a topic's name, in which * fits any characters"};
    wanted.pattern = *pattern;
  }
  return wanted;
}

}  // namespace

/// One request while its pages arrive.
struct MetricsResource::Scrape {
  Scrape(const Wanted& wanted, std::size_t topics_max, MetricFormat in, HttpReply answer)
      : topics({.topics_max = wanted.detail ? topics_max : 0, .zeros = wanted.zeros}),
        pattern(wanted.pattern),
        format(in),
        reply(std::move(answer)) {}

  TopicMetrics topics;
  const std::string pattern;
  const MetricFormat format;
  const HttpReply reply;
  std::shared_ptr<void> place;  // gives back the place among the requests under way
  ConnectionCounts connections;
  std::optional<protocol::BrokerStats> broker;  // for administrators
};

MetricsResource::MetricsResource(Parts parts) : parts_(std::move(parts)), pages_(parts_.loop, parts_.gate) {}

void MetricsResource::add_to(Router& router) {
  router.add("GET", "/metrics", [this](HttpExchange exchange) { get(std::move(exchange)); });
}

void MetricsResource::get(HttpExchange exchange) {
  const auto wanted = wanted_of(exchange.request.query);
  if (!wanted) return exchange.reply(problem(wanted.error()));
  const auto scrape = std::make_shared<Scrape>(*wanted, parts_.topics_max,
                                               metric_format_of(exchange.request.accept), exchange.reply);
  parts_.gate.as_user(std::move(exchange),
                      [this, scrape](const Asker& asker, Operations& operations, const HttpReply& /*reply*/) {
                        begin(scrape, asker, operations);
                      });
}

/// Thread: the control thread.
void MetricsResource::begin(const std::shared_ptr<Scrape>& scrape, const Asker& asker,
                            Operations& operations) {
  if (scrapes_.take(asker.turn_key()) != Scrapes::Verdict::room) {
    count(parts_.limits_reached, Limit::http_scrapes_max);
    return scrape->reply(problem({ErrorCode::busy, "too many requests for metrics are under way"}));
  }
  scrape->place = std::shared_ptr<void>(
      nullptr, [this, user = asker.turn_key()](void* /*none*/) { scrapes_.give_back(user); });
  if (operations.stats().describes_broker_to(asker)) {
    scrape->broker.emplace();
    operations.stats().add_own(*scrape->broker);
    scrape->connections.control = parts_.control_connections();
  }
  TopicsWanted wanted;
  wanted.pattern = scrape->pattern;
  wanted.with_connections = scrape->broker.has_value();
  pages_.read(operations, asker, std::move(wanted),
              [this, scrape](Result<const StatsPage*> page) { received(*scrape, std::move(page)); });
}

void MetricsResource::received(Scrape& scrape, Result<const StatsPage*> page) {
  if (!page) return scrape.reply(problem(page.error()));
  if (*page != nullptr) {
    for (const protocol::TopicStats& topic : (*page)->topics) {
      scrape.topics.add(topic);
      scrape.connections.producers += topic.publishers_count;
      scrape.connections.consumers += topic.subscribers_count;
    }
    if (scrape.broker) {
      scrape.broker->refused_connections += (*page)->connections.refused;
      scrape.broker->limits_reached["handshakes_max"] += (*page)->connections.evicted;
    }
    return;
  }
  MetricText text(scrape.format);
  write_build_metric(text);
  if (scrape.broker) {
    scrape.connections.http = parts_.http_connections();
    write_broker_metrics(*scrape.broker, scrape.connections, text);
    write_latency_metrics(parts_.latencies(), text);
    write_process_metrics(process_use(), text);
  }
  scrape.topics.write(text);
  scrape.reply({.content_type = std::string(content_type_of(scrape.format)), .body = text.finish()});
}

}  // namespace lightq::broker
