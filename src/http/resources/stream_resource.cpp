/// Messages as server-sent events. Layer: http.
#include "http/resources/stream_resource.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "http/parameter_reader.hpp"
#include "http/problem.hpp"
#include "http/streams/event_stream.hpp"

namespace lightq::broker {

namespace {

/// Returns the position of the message behind the last one that the client has.
Result<StartPosition> behind(std::string_view last_event_id) {
  const auto last = whole_number(last_event_id, 0, INT64_MAX - 1);
  if (!last) return Error{ErrorCode::invalid_request, "Last-Event-ID: must be the id of an event"};
  return StartPosition{StartPosition::From::offset, *last + 1};
}

Result<StreamWish> stream_wish_of(const HttpRequest& request) {
  using From = StartPosition::From;
  ParameterReader parameters(
      request.query, std::array<std::string_view, 6>{"group", "max", "lease", "from", "time_us", "ack"});
  StreamWish wish;
  wish.group = parameters.name("group");
  wish.messages_max =
      parameters.number("max", 1, limits::http_messages_max, limits::http_stream_messages_default);
  wish.bytes_max = limits::http_stream_bytes_max;
  wish.lasts = parameters.time("lease", limits::http_lease_ms_min, UINT32_MAX, limits::http_lease_ms_default);
  wish.is_acknowledged = parameters.word("ack", {"later", "now"}) == 1;
  const auto place = parameters.place();
  if (place && !wish.group.empty() && place->from == From::offset)
    parameters.fail("from", "must be first or next with a group");
  if (parameters.error()) return *parameters.error();
  wish.start = place.value_or(StartPosition{wish.group.empty() ? From::next : From::first, 0});
  if (!wish.group.empty() || request.last_event_id.empty()) return wish;
  const auto start = behind(request.last_event_id);
  if (!start) return start.error();
  wish.start = *start;
  return wish;
}

}  // namespace

void StreamResource::add_to(Router& router) {
  router.add("GET", "/api/v1/topics/{topic}/stream",
             [this](HttpExchange exchange) { open(std::move(exchange)); });
}

HttpResponse StreamResource::refused() const {
  count(parts_.limits_reached, Limit::http_streams_max);
  return problem({ErrorCode::limit_reached, "there are too many streams"});
}

void StreamResource::open(HttpExchange exchange) {
  if (exchange.request.is_head())
    return exchange.reply(problem(405, ErrorCode::invalid_cmd, "HEAD would take messages; use GET"));
  const auto wish = stream_wish_of(exchange.request);
  if (!wish) return exchange.reply(problem(wish.error()));
  auto source_place = places_.take(exchange.source.key);
  if (source_place == nullptr) return exchange.reply(refused());
  if (exchange.watch_end) exchange.watch_end();
  const GroupScope scope = GroupScope::of(wish->group);
  const HttpReply reply = exchange.reply;
  const auto send_more = exchange.send_more;
  parts_.desks.at_desk(
      std::move(exchange), EndpointRole::pull, scope,
      [this, parts = parts_, wish = *wish, reply, send_more, first_place = std::move(source_place)](
          MessageDesk& desk, Reactor& reactor, TopicId topic, const Requester& requester) {
        const auto place = both(first_place, user_places_.take(std::to_string(requester.user())));
        if (place == nullptr) return reply(refused());
        const auto at_desk = [&desks = parts.desks, topic](std::function<void(MessageDesk&)> call) {
          return desks.call(topic, std::move(call));
        };
        desk.stream(
            reactor, topic, requester, wish,
            std::make_shared<EventStream>(EventStream::Parts{parts.loop, reply, send_more, at_desk, place}));
      });
}

}  // namespace lightq::broker
