/// GET /api/v1/events. Layer: http.
#include "http/resources/events_resource.hpp"

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "http/problem.hpp"
#include "http/streams/stats_stream.hpp"

namespace lightq::broker {

void EventsResource::add_to(Router& router) {
  router.add("GET", "/api/v1/events", [this](HttpExchange exchange) { open(std::move(exchange)); });
}

void EventsResource::open(HttpExchange exchange) {
  if (exchange.request.is_head())
    return exchange.reply(problem(405, ErrorCode::invalid_cmd, "HEAD has no content; use GET"));
  if (const auto objection = exchange.request.query.objection(std::array<std::string_view, 0>{}))
    return exchange.reply(problem(*objection));
  if (exchange.watch_end) exchange.watch_end();
  const auto send_more = exchange.send_more;
  const std::string source = exchange.source.key;
  // Only logins take a place: a client with a wrong password waits, and must not keep viewers out meanwhile.
  parts_.gate.as_user(
      std::move(exchange),
      [this, send_more, source](const Asker& asker, Operations& /*operations*/, const HttpReply& reply) {
        begin(source, asker, reply, send_more);
      });
}

/// Opens the stream of a client that is logged in. Thread: the control thread.
void EventsResource::begin(const std::string& source, const Asker& asker, const HttpReply& reply,
                           const SendMore& send_more) {
  auto place = both(places_.take(source), user_places_.take(asker.turn_key()));
  if (place == nullptr) {
    count(parts_.limits_reached, Limit::http_viewers_max);
    return reply(problem({ErrorCode::limit_reached, "there are too many viewers"}));
  }
  const auto at_control = [&gate = parts_.gate](std::function<void(Operations&)> work) {
    return gate.as_broker(std::move(work));
  };
  std::make_shared<StatsStream>(StatsStream::Parts{.loop = parts_.loop,
                                                   .at_control = at_control,
                                                   .control_connections = parts_.control_connections,
                                                   .http_connections = parts_.http_connections,
                                                   .disk = parts_.disk,
                                                   .asker = asker,
                                                   .reply = reply,
                                                   .send_more = send_more,
                                                   .place = std::move(place)})
      ->begin();
}

}  // namespace lightq::broker
