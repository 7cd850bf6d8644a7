/// Messages over HTTP: publish, receive and settle them. Layer: http.
#include "http/resources/messages_resource.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <lightq/base/limits.hpp>

#include "http/messages/message_text.hpp"
#include "http/parameter_reader.hpp"
#include "http/problem.hpp"

namespace lightq::broker {

namespace {

using std::chrono::milliseconds;

constexpr std::string_view lines_type = "application/x-ndjson";
constexpr std::string_view bytes_type = "application/octet-stream";

Error invalid_parameter(std::string_view name, const std::string& why) {
  return {ErrorCode::invalid_request, std::string(name) + ": " + why};
}

/// How a request wants its messages published.
struct PublishWish {
  Confirming confirming;
  milliseconds wait;
};

Result<PublishWish> publish_wish_of(const Query& query) {
  ParameterReader parameters(query, std::array<std::string_view, 2>{"confirm", "wait"});
  const auto confirming =
      static_cast<Confirming>(parameters.word("confirm", {"default", "received", "flushed"}));
  const milliseconds wait =
      parameters.time("wait", 0, limits::http_wait_ms_max, limits::http_wait_ms_default);
  if (parameters.error()) return *parameters.error();
  return PublishWish{confirming, wait};
}

/// Returns the messages with the wish, or the first error.
Result<MessagesToPublish> with_wish(Result<MessagesToPublish> messages, const PublishWish& wish) {
  if (!messages) return messages;
  messages->confirming = wish.confirming;
  messages->wait = wish.wait;
  return messages;
}

Result<LeaseWish> lease_wish_of(const Query& query) {
  using From = StartPosition::From;
  ParameterReader parameters(query,
                             std::array<std::string_view, 6>{"group", "max", "wait", "lease", "from", "ack"});
  LeaseWish wish;
  wish.group = parameters.name("group");
  wish.messages_max = parameters.number("max", 1, limits::http_messages_max, 1);
  wish.bytes_max = limits::http_messages_bytes_max;
  wish.wait = parameters.time("wait", 0, limits::http_wait_ms_max, 0);
  wish.lasts = parameters.time("lease", limits::http_lease_ms_min, UINT32_MAX, limits::http_lease_ms_default);
  wish.start = {parameters.word("from", {"first", "next"}) == 0 ? From::first : From::next, 0};
  wish.is_acknowledged = parameters.word("ack", {"later", "now"}) == 1;
  if (parameters.error()) return *parameters.error();
  return wish;
}

Result<Settling> settling_of(const Query& query, Settling::What what) {
  ParameterReader parameters(query, std::array<std::string_view, 3>{"offsets", "ms", "reason"});
  Settling settling;
  settling.what = what;
  const bool needs_time = what == Settling::What::extend;
  settling.ms = static_cast<std::uint32_t>(parameters.number("ms", needs_time ? 1 : 0, UINT32_MAX,
                                                             needs_time ? limits::http_lease_ms_default : 0));
  if (const auto reason = query.find("reason")) settling.reason = *reason;
  if (parameters.error()) return *parameters.error();
  if (settling.reason.size() > 256) return invalid_parameter("reason", "must have at most 256 bytes");
  if (const auto text = query.find("offsets")) {
    auto ranges = ranges_of(*text);
    if (!ranges) return ranges.error();
    settling.ranges = std::move(*ranges);
  }
  return settling;
}

HttpResponse json_response(std::string text) {
  return {.content_type = "application/json", .body = std::move(text)};
}

HttpResponse response_to(const Published& published) {
  return json_response(std::string(published.are_delayed ? "{\"first_number\":" : "{\"first_offset\":") +
                       std::to_string(published.first.value) +
                       ",\"messages\":" + std::to_string(published.messages) +
                       ",\"flushed\":" + (published.is_flushed ? "true" : "false") +
                       (published.is_repeated ? ",\"repeated\":true}\n" : "}\n"));
}

HttpResponse response_to(const Settled& settled) {
  return json_response("{\"messages\":" + std::to_string(settled.messages) + ",\"in_flight\":" +
                       std::to_string(settled.in_flight) + ",\"late\":" + text_of(settled.late) + "}\n");
}

/// Returns the payload of the only message, with its attributes in headers.
HttpResponse bytes_response(Leased&& leased, const std::string& lease) {
  if (leased.messages.empty()) return {.status = 204};
  ReceivedMessage& message = leased.messages.front();
  HttpResponse response{.content_type = std::string(bytes_type), .body = std::move(message.payload)};
  auto& headers = response.headers;
  if (!lease.empty()) headers.emplace_back("Lightq-Lease", lease);
  headers.emplace_back("Lightq-Offset", std::to_string(message.offset.value));
  headers.emplace_back("Lightq-Delivery", std::to_string(message.marks.delivery));
  return response;
}

HttpResponse response_to(Leased&& leased, bool as_bytes) {
  const std::string lease = leased.lease == 0 ? std::string() : name_of_lease(leased.lease);
  return as_bytes ? bytes_response(std::move(leased), lease) : json_response(text_of(leased, lease));
}

/// Returns the work of a desk that publishes the messages and answers.
auto publication_of(MessagesToPublish messages, const HttpReply& reply) {
  return [kept = std::make_shared<MessagesToPublish>(std::move(messages)), reply](
             MessageDesk& desk, Reactor& reactor, TopicId topic, const Requester& requester) {
    desk.publish(reactor, topic, requester, std::move(*kept), [reply](const Result<Published>& done) {
      reply(done ? response_to(*done) : problem(done.error()));
    });
  };
}

}  // namespace

void MessagesResource::add_to(Router& router) {
  using What = Settling::What;
  constexpr std::string_view messages = "/api/v1/topics/{topic}/messages";
  router.add("POST", messages, [this](HttpExchange exchange) { publish(std::move(exchange)); });
  router.add("GET", messages, [this](HttpExchange exchange) { receive(std::move(exchange)); });
  for (const auto& [name, what] : {std::pair("acknowledge", What::acknowledge),
                                   std::pair("retry", What::retry), std::pair("release", What::release),
                                   std::pair("dead", What::dead), std::pair("extend", What::extend)})
    router.add("POST", std::string("/api/v1/topics/{topic}/leases/{lease}/") + name,
               [this, asked = what](HttpExchange exchange) { settle(std::move(exchange), asked); });
}

void MessagesResource::publish(HttpExchange exchange) {
  if (exchange.request.content_type == lines_type) return publish_lines(std::move(exchange));
  const auto wish = publish_wish_of(exchange.request.query);
  if (!wish) return exchange.reply(problem(wish.error()));
  auto messages = with_wish(message_of_request(exchange.request), *wish);
  if (!messages) return exchange.reply(problem(messages.error()));
  exchange.request.body = std::string();
  const HttpReply answer = exchange.reply;
  parts_.desks.at_desk(std::move(exchange), EndpointRole::produce, GroupScope::whole_topic(),
                       publication_of(std::move(*messages), answer));
}

/// Many lines take long to parse, so that is done on the HTTP thread after the login was checked, in steps
/// between which the thread serves other requests.
void MessagesResource::publish_lines(HttpExchange exchange) {
  const auto wish = publish_wish_of(exchange.request.query);
  const auto lines = std::make_shared<MessageLines>(std::move(exchange.request.body));
  parts_.desks.permit(std::move(exchange), EndpointRole::produce, GroupScope::whole_topic(),
                      [this, wish, lines](TopicId topic, const Requester& requester, const HttpReply& reply) {
                        if (!wish) return reply(problem(wish.error()));
                        work_on(lines, [this, wish = *wish, lines, topic, requester, reply] {
                          auto messages = with_wish(lines->take(), wish);
                          if (!messages) return reply(problem(messages.error()));
                          parts_.desks.to_desk(topic, requester, reply,
                                               publication_of(std::move(*messages), reply));
                        });
                      });
}

/// Posts one step after the other. Thread: any; the steps and `done` run on the HTTP thread.
void MessagesResource::work_on(const std::shared_ptr<MessageLines>& lines, HttpLoop::Task done) const {
  parts_.loop.post([this, lines, done = std::move(done)]() mutable {
    if (lines->work()) return done();
    work_on(lines, std::move(done));
  });
}

void MessagesResource::receive(HttpExchange exchange) {
  if (exchange.request.is_head()) {
    HttpResponse refused = problem(405, ErrorCode::invalid_cmd, "HEAD would take messages; use GET");
    refused.headers.emplace_back("Allow", "POST, GET");
    return exchange.reply(std::move(refused));
  }
  auto wish = lease_wish_of(exchange.request.query);
  const bool as_bytes = exchange.request.accept.find(bytes_type) != std::string::npos;
  if (wish && as_bytes && wish->messages_max != 1)
    wish = invalid_parameter("max", "must be 1 for application/octet-stream");
  if (!wish) return exchange.reply(problem(wish.error()));
  if (wish->wait.count() > 0 && exchange.watch_end) exchange.watch_end();
  const GroupScope scope =
      GroupScope::of(wish->group.empty() ? protocol::default_group : std::string_view(wish->group));
  const HttpReply answer = exchange.reply;
  parts_.desks.at_desk(std::move(exchange), EndpointRole::pull, scope,
                       [this, wish = *wish, as_bytes, reply = answer](
                           MessageDesk& desk, Reactor& reactor, TopicId topic, const Requester& requester) {
                         desk.lease(reactor, topic, requester, wish,
                                    [this, topic, as_bytes, reply](Result<Leased> leased) {
                                      received(topic, std::move(leased), as_bytes, reply);
                                    });
                       });
}

/// Makes the text on the HTTP thread. Thread: the reactor's.
void MessagesResource::received(TopicId topic, Result<Leased> leased, bool as_bytes,
                                const HttpReply& reply) const {
  if (!leased) return reply(problem(leased.error()));
  const auto kept = std::make_shared<Leased>(std::move(*leased));
  parts_.loop.post([this, topic, kept, as_bytes, reply] {
    const std::shared_ptr<const void> held = kept->held;
    HttpResponse response = response_to(std::move(*kept), as_bytes);
    response.held = held;
    if (kept->lease != 0) response.not_sent = [this, topic, lease = kept->lease] { take_back(topic, lease); };
    reply(std::move(response));
  });
}

/// The client has not received the messages of the lease: others may have them at once.
void MessagesResource::take_back(TopicId topic, std::uint64_t lease) const {
  // If the reactor has too many tasks, the lease ends by its time.
  (void)parts_.desks.call(topic, [lease](MessageDesk& desk) { desk.take_back(lease); });
}

void MessagesResource::settle(HttpExchange exchange, Settling::What what) {
  const auto settling = settling_of(exchange.request.query, what);
  if (!settling) return exchange.reply(problem(settling.error()));
  const std::uint64_t named = lease_named(exchange.parts.at(1));
  const HttpReply answer = exchange.reply;
  parts_.desks.at_desk(
      std::move(exchange), EndpointRole::pull, GroupScope::some_group(),
      [lease = named, settling = *settling, reply = answer](MessageDesk& desk, Reactor& reactor,
                                                            TopicId topic, const Requester& requester) {
        const auto settled = desk.settle(reactor, topic, requester, lease, settling);
        if (settled) return reply(response_to(*settled));
        const bool is_over = settled.error().code == ErrorCode::timeout;
        reply(is_over ? problem(410, ErrorCode::timeout, settled.error().message) : problem(settled.error()));
      });
}

}  // namespace lightq::broker
