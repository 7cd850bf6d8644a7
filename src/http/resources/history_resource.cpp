/// GET /api/v1/topics/TOPIC/history. Layer: http.
#include "http/resources/history_resource.hpp"

#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <lightq/protocol/json_fields.hpp>

#include "http/problem.hpp"
#include "topic/history/topic_history.hpp"
#include "topic/reactor/reactor.hpp"

namespace lightq::broker {

namespace {

using Document = protocol::detail::OrderedJson;

/// Returns a rate with one digit behind the point, so that a list of them is short.
double rounded(float rate) {
  return std::round(static_cast<double>(rate) * 10) / 10;
}

Document document_of(const std::vector<FlowSample>& samples, unsigned step_ms) {
  Document document{{"step_ms", step_ms}};
  for (const char* const name : {"in", "out", "pending", "lag"}) document[name] = Document::array();
  for (const FlowSample& sample : samples) {
    document["in"].push_back(rounded(sample.in));
    document["out"].push_back(rounded(sample.out));
    document["pending"].push_back(sample.pending);
    document["lag"].push_back(sample.lag);
  }
  return document;
}

std::string course_text(const TopicCourse& course) {
  const Document document{{"seconds", document_of(course.seconds, 1'000)},
                          {"minutes", document_of(course.minutes, 60'000)}};
  return protocol::detail::dump(document) + "\n";
}

}  // namespace

void HistoryResource::add_to(Router& router) {
  router.add("GET", "/api/v1/topics/{topic}/history",
             [this](HttpExchange exchange) { read(std::move(exchange)); });
}

void HistoryResource::read(HttpExchange exchange) const {
  const auto name = TopicName::parse(exchange.parts.at(0));
  if (!name) return exchange.reply(problem({ErrorCode::invalid_request, "the path has no name of a topic"}));
  if (const auto objection = exchange.request.query.objection(std::array<std::string_view, 0>{}))
    return exchange.reply(problem(*objection));
  parts_.gate.on_topic(
      std::move(exchange), *name, {},
      [&parts = parts_, name = *name](const Asker& /*asker*/, Operations& operations,
                                      const HttpReply& reply) {
        const auto topic = operations.topics().find(name);
        if (!topic) return reply(problem(topic.error()));
        const auto answer = [&loop = parts.loop, id = *topic, reply](std::size_t, Reactor& reactor) {
          // The text is made on the HTTP thread.
          const auto course =
              std::make_shared<const TopicCourse>(reactor.history().course_of(id, EventLoop::Clock::now()));
          loop.post(
              [course, reply] { reply({.content_type = "application/json", .body = course_text(*course)}); });
        };
        if (!parts.on_topic(*topic, answer))
          reply(problem({ErrorCode::busy, "the broker has too many requests under way"}));
      });
}

}  // namespace lightq::broker
