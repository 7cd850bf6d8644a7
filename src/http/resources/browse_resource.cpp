/// Reading messages without changing anything. Layer: http.
#include "http/resources/browse_resource.hpp"

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <lightq/base/limits.hpp>

#include "http/messages/message_text.hpp"
#include "http/parameter_reader.hpp"
#include "http/problem.hpp"

namespace lightq::broker {

namespace {

constexpr std::string_view ndjson_type = "application/x-ndjson";

Result<BrowseWish> browse_wish_of(const Query& query) {
  ParameterReader parameters(query,
                             std::array<std::string_view, 5>{"from", "time_us", "max", "key", "key_base64"});
  BrowseWish wish;
  wish.start = parameters.place().value_or(StartPosition{});
  wish.messages_max =
      parameters.number("max", 1, limits::http_messages_max, limits::http_browse_messages_default);
  wish.bytes_max = limits::http_messages_bytes_max;
  wish.wait = std::chrono::milliseconds(limits::http_wait_ms_default);
  wish.key = parameters.bytes("key", limits::key_bytes_max);
  if (wish.key) {
    wish.scanned_max = limits::http_scanned_messages_max;
    wish.scanned_bytes_max = limits::http_scanned_bytes_max;
  }
  if (parameters.error()) return *parameters.error();
  return wish;
}

/// Returns the messages as lines, with the rest of the answer in headers.
HttpResponse lines_of(const Browsed& browsed) {
  HttpResponse response{.content_type = std::string(ndjson_type)};
  for (const ReceivedMessage& message : browsed.messages) {
    append_message(message, response.body);
    response.body += '\n';
  }
  response.headers.emplace_back("Lightq-Next", std::to_string(browsed.next.value));
  response.headers.emplace_back("Lightq-Lost", std::to_string(browsed.lost));
  if (browsed.scanned) response.headers.emplace_back("Lightq-Scanned", std::to_string(*browsed.scanned));
  return response;
}

}  // namespace

void BrowseResource::add_to(Router& router) {
  router.add("GET", "/api/v1/topics/{topic}/browse",
             [this](HttpExchange exchange) { read(std::move(exchange)); });
}

void BrowseResource::read(HttpExchange exchange) const {
  const auto wish = browse_wish_of(exchange.request.query);
  if (!wish) return exchange.reply(problem(wish.error()));
  const bool as_lines = exchange.request.accept.find(ndjson_type) != std::string::npos;
  const HttpReply answer = exchange.reply;
  parts_.desks.at_desk(
      std::move(exchange), EndpointRole::pull, GroupScope::of({}),
      [&loop = parts_.loop, wish = *wish, as_lines, answer](MessageDesk& desk, Reactor& reactor,
                                                            TopicId topic, const Requester& requester) {
        desk.browse(reactor, topic, requester, wish, [&loop, as_lines, answer](Result<Browsed> browsed) {
          if (!browsed) return answer(problem(browsed.error()));
          // The text is made on the HTTP thread.
          const auto kept = std::make_shared<const Browsed>(std::move(*browsed));
          loop.post([kept, as_lines, answer] {
            HttpResponse response =
                as_lines ? lines_of(*kept)
                         : HttpResponse{.content_type = "application/json", .body = text_of(*kept)};
            response.held = kept->held;
            answer(std::move(response));
          });
        });
      });
}

}  // namespace lightq::broker
