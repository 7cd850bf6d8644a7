/// Binds the control sockets, admits requests under the limits and sends their replies. Layer: control.
#include "control/control_server.hpp"

#include <algorithm>
#include <charconv>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include <lightq/base/limits.hpp>
#include <lightq/protocol/json.hpp>
#include <lightq/protocol/json_scan.hpp>

#include "admission/memory_reserve.hpp"
#include "admission/turn_work.hpp"

namespace lightq::broker {

namespace {

constexpr std::string_view tcp_prefix = "tcp://";
constexpr std::string_view ipc_prefix = "ipc://";
constexpr std::size_t scratch_bytes = 64 * limits::KiB;

struct BoundSocket {
  ListeningSocket socket;
  std::string uri;
};

Error not_an_address(const std::string& why) {
  return {ErrorCode::invalid_argument, why};
}

Result<BoundSocket> bind_tcp(std::string_view address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return not_an_address("it must be tcp://HOST:PORT");
  const std::string_view digits = address.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (digits != "*" && (digits.empty() || error != std::errc{} || end != digits.data() + digits.size())) {
    return not_an_address("the port must be a number from 0 to 65535");
  }
  std::string host(address.substr(0, colon));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const auto numeric = resolve_host(host == "*" ? "0.0.0.0" : host);
  if (!numeric) return numeric.error();
  auto socket = listen_tcp(*numeric, port);
  if (!socket) return socket.error();
  std::string uri = std::string(tcp_prefix) + uri_host(*numeric) + ":" + std::to_string(socket->port);
  return BoundSocket{std::move(*socket), std::move(uri)};
}

Result<BoundSocket> bind_ipc(const std::string& path) {
  if (path.empty() || path[0] == '@' || path[0] == '*') {
    return not_an_address("it must be ipc://PATH, with the path of a socket file");
  }
  auto socket = listen_unix(path);
  if (!socket) return socket.error();
  return BoundSocket{std::move(*socket), std::string(ipc_prefix) + path};
}

Result<BoundSocket> bind_uri(const std::string& uri) {
  if (uri.starts_with(tcp_prefix)) return bind_tcp(std::string_view(uri).substr(tcp_prefix.size()));
  if (uri.starts_with(ipc_prefix)) return bind_ipc(uri.substr(ipc_prefix.size()));
  return not_an_address("it must be tcp://HOST:PORT or ipc://PATH");
}

/// Returns true for requests that receive an immediate reply without any check, and so take no place among
/// those under way.
bool needs_no_place(const protocol::Request& request) {
  return std::holds_alternative<protocol::Ping>(request) ||
         std::holds_alternative<protocol::Version>(request);
}

/// Returns true if the length of the reply grows with the number of topics, groups or users.
bool may_be_long(const protocol::Request& request) {
  return std::holds_alternative<protocol::Stats>(request) ||
         std::holds_alternative<protocol::StatsAll>(request) ||
         std::holds_alternative<protocol::ListTopics>(request) ||
         std::holds_alternative<protocol::Trace>(request) ||
         std::holds_alternative<protocol::ListUsers>(request);
}

/// Returns the key by which an asker shares limits with others. An asker without a user shares them with all
/// other such askers of its source.
std::string owner_of(const AskerId& asker, const std::string& source) {
  return asker ? "user " + std::to_string(*asker) : "source " + source;
}

/// Returns the result of `work`, or nothing if there is not enough memory. `work` must change nothing that
/// outlives it.
template <typename Work>
auto within_memory(Work&& work) -> std::optional<decltype(work())> {
  const FallibleAllocations fallible;
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

protocol::ErrorReply no_memory_for(std::string_view body) {
  return {std::string(protocol::detail::command_in_front(body)), ErrorCode::busy,
          "not enough memory for the request or its reply; try again"};
}

}  // namespace

Result<std::unique_ptr<ControlServer>> ControlServer::open(EventLoop& loop, LogSink& sink,
                                                           const std::string& uri, Handle handle,
                                                           const UnauthenticatedLimits& unauthenticated,
                                                           Pace pace, const ControlLimits& control_limits) {
  auto bound = bind_uri(uri);
  if (!bound) {
    Error error = bound.error();
    error.message = "control socket: cannot bind " + uri + ": " + error.message;
    return error;
  }
  return std::unique_ptr<ControlServer>(new ControlServer(loop, sink, std::move(handle),
                                                          std::move(bound->socket), std::move(bound->uri),
                                                          unauthenticated, std::move(pace), control_limits));
}

ControlServer::ControlServer(EventLoop& loop, LogSink& sink, Handle handle, ListeningSocket socket,
                             std::string bound_uri, const UnauthenticatedLimits& unauthenticated, Pace pace,
                             const ControlLimits& control_limits)
    : loop_(loop),
      sink_(sink),
      handle_(std::move(handle)),
      pace_(std::move(pace)),
      limits_(control_limits),
      bounds_(limits_, pace_.requests_per_second),
      bound_uri_(std::move(bound_uri)),
      handshake_time_(unauthenticated.handshake_time),
      accepts_(unauthenticated.accepts_per_second, unauthenticated.accepts_at_once()),
      second_accepts_(unauthenticated.accepts_per_second, unauthenticated.accepts_at_once()),
      listener_(loop, std::move(socket), *this, accepts_, limits::descriptors_reserved_for_files),
      scratch_(scratch_bytes),
      handshakes_(unauthenticated.handshakes_max) {}

ControlServer::~ControlServer() = default;

void ControlServer::change_limits(const ControlLimits& control_limits, std::size_t requests_per_second) {
  limits_.connections_max = control_limits.connections_max;
  limits_.answers_unread_bytes_max = control_limits.answers_unread_bytes_max;
  limits_.answers_unread_bytes_total = control_limits.answers_unread_bytes_total;
  bounds_.change(limits_, requests_per_second);
}

void ControlServer::listen_also(ListeningSocket socket) {
  second_listener_.emplace(loop_, std::move(socket), *this, second_accepts_,
                           limits::descriptors_reserved_for_files);
}

Result<void> ControlServer::accept() {
  if (listener_.start() && (!second_listener_ || second_listener_->start())) return {};
  return Error{ErrorCode::io_error, "control socket: cannot watch " + bound_uri_};
}

bool ControlServer::all_sent() const {
  return std::all_of(clients_.begin(), clients_.end(),
                     [](const auto& entry) { return entry.second->all_sent(); });
}

bool ControlServer::accepted(UniqueFd descriptor) {
  const std::uint64_t id = next_client_++;
  auto& client = clients_[id];
  RequestSource source = source_of(descriptor.get());
  client = std::make_unique<ControlConnection>(loop_, std::move(descriptor), *this, scratch_, id, *this,
                                               std::move(source), limits_.request_bytes_max);
  handshakes_.enter(*client, client->source().key);
  if (!client->start()) client->close("the event loop cannot watch the connection");
  return true;
}

void ControlServer::accept_failed() {
  handshakes_.make_room();
  limit_reached(Limit::descriptors_reserved);
  sink_.error("control socket: out of file descriptors; new clients wait (raise the limit with ulimit -n)");
}

void ControlServer::connection_opened(Connection& /*connection*/) {
  // Every peer that speaks ZeroMQ may connect. Requests are checked one by one; see requested().
}

void ControlServer::connection_closed(Connection& connection, const std::string& why) {
  handshakes_.leave(connection);
  if (connection.was_open()) {
    sink_.debug("control socket: a client disconnected: " + why);
  } else {
    accepts_.unauthenticated_closed(EventLoop::Clock::now());
    sink_.debug("control socket: a connection was refused: " + why);
  }
  const auto& client = static_cast<ControlConnection&>(connection);
  known_.remove(client.id());
  bounds_.unread.change(client.source().key, client.unread(), 0);
  const auto found = clients_.find(client.id());
  if (found == clients_.end()) return;
  loop_.destroy_later(std::move(found->second));
  clients_.erase(found);
}

void ControlServer::requested(const ControlConnection::Envelope& from,
                              const ControlConnection::Message& message) {
  const std::string_view body = message.body;
  ControlConnection& client = *clients_.at(from.client);
  const RequestSource& source = client.source();
  if (!is_within_rate(client)) {
    ++throttled_;
    // Parse only its command: a source that asks too much must cost little.
    answer(from, protocol::ErrorReply{std::string(protocol::detail::command_in_front(body)), ErrorCode::busy,
                                      "too many requests from this source address; try again"});
    return;
  }
  if (const auto fault = fault_of(from, message)) {
    count_unparsed(*fault, {});
    answer(from, protocol::ErrorReply{{}, fault->code, fault->text()});
    return;
  }
  auto read = within_memory([&] { return protocol::parse_request(body, limits_.request_bytes_max); });
  if (!read) return void(answer(from, no_memory_for(body)));
  auto& parsed = *read;
  if (!parsed.request) {
    const Error& error = parsed.request.error();
    count_unparsed(error, body);
    answer(from, protocol::ErrorReply{parsed.cmd, error.code, error.text()});
    return;
  }
  const auto busy = needs_no_place(*parsed.request) ? std::nullopt : too_many_under_way(source.key);
  if (busy) {
    answer(from, protocol::ErrorReply{parsed.cmd, busy->code, busy->message});
  } else {
    dispatch(from, source, std::move(parsed.request).value());
  }
}

/// Returns the reason to refuse a message before parsing it; nothing if it may be parsed.
std::optional<Error> ControlServer::fault_of(const ControlConnection::Envelope& from,
                                             const ControlConnection::Message& message) const {
  if (from.too_long) {
    return Error{ErrorCode::invalid_request,
                 "the frames before the empty frame of the request have more than " +
                     std::to_string(ControlConnection::envelope_bytes_max) + " bytes"};
  }
  if (message.parts != 1) {
    return Error{ErrorCode::invalid_json,
                 "a request is one message part, not " + std::to_string(message.parts)};
  }
  if (message.bytes > limits_.request_bytes_max)
    return protocol::detail::document_too_large(message.bytes, limits_.request_bytes_max);
  return std::nullopt;
}

/// Counts one more request of the client. Requests within the connection's own rate also use up the source's
/// rate.
bool ControlServer::is_within_rate(ControlConnection& client) {
  const auto now = pace_.now();
  const bool within = bounds_.requests.take(client.source().key, now);
  return client.free_requests().take(Rate(pace_.requests_free), now) || within;
}

void ControlServer::count_unparsed(const Error& error, std::string_view body) {
  constexpr std::size_t too_deep = limits::json_depth_max + 1;
  if (error.code == ErrorCode::request_too_large) return limit_reached(Limit::request_bytes_max);
  if (protocol::detail::nesting_depth(body, too_deep) == too_deep) limit_reached(Limit::json_depth_max);
}

std::optional<Error> ControlServer::too_many_under_way(const std::string& source) const {
  const auto reached = bounds_.under_way.objection_to(source);
  if (!reached) return std::nullopt;
  count(counts_, *reached);
  const bool of_source = *reached == Limit::requests_waiting_per_source_max;
  const std::size_t many = of_source ? bounds_.under_way.of(source) : bounds_.under_way.total();
  return Error{ErrorCode::busy, std::to_string(many) + " requests " +
                                    (of_source ? "from this source address " : "") +
                                    "are under way already; try again"};
}

class ControlServer::Course final : public RequestCourse {
 public:
  Course(ControlServer& server, std::uint64_t client, const std::string& source, bool may_be_long)
      : server_(server), client_(client), may_be_long_(may_be_long), request_{source} {
    server_.bounds_.under_way.enter(request_);
  }
  void stand_aside(bool aside) override {
    RequestsUnderWay& under_way = server_.bounds_.under_way;
    aside ? under_way.leave(request_) : under_way.enter(request_);
  }
  std::optional<Error> asked_by(const AskerId& asker) override { return server_.asked_by(*this, asker); }
  [[nodiscard]] std::uint64_t client() const { return client_; }
  [[nodiscard]] RequestsUnderWay::Request& request() { return request_; }
  [[nodiscard]] bool may_be_long() const { return may_be_long_; }
  /// Records that the owner was charged `taken` for the reply.
  void paid(const std::string& owner, double taken) {
    payer_ = owner;
    taken_ = taken;
  }
  void worked(std::uint64_t bytes) override { work_bytes_ += bytes; }
  /// `bytes`: those of the reply, or 0 if the client has gone; its work is charged all the same.
  void answered(std::size_t bytes) {
    if (payer_.empty() || (bytes == 0 && work_bytes_ == 0)) return;
    const auto cost = ClientBounds::cost_of(std::max<std::uint64_t>(bytes, work_bytes_));
    server_.bounds_.replies.settle(payer_, taken_, cost);
  }

 private:
  ControlServer& server_;
  const std::uint64_t client_;
  const bool may_be_long_;
  RequestsUnderWay::Request request_;
  std::string payer_;  // empty: no owner was charged
  double taken_ = 0;
  std::uint64_t work_bytes_ = 0;
};

void ControlServer::dispatch(const ControlConnection::Envelope& from, const RequestSource& source,
                             protocol::Request request) {
  ControlConnection& client = *clients_.at(from.client);
  client.request_begins();
  known_.set(from.client, Eviction::excluded);
  auto course = std::make_shared<Course>(*this, from.client, source.key, may_be_long(request));
  const auto send = [this, from, course](const protocol::Reply& reply) {
    course->stand_aside(true);
    course->answered(answer(from, reply));
    request_ended(from.client);
  };
  handle_(std::move(request), Answer(send, source, course));
}

/// Assigns a permitted request to its asker. Its connection leaves the unauthenticated ones even if the asker
/// has too many requests.
std::optional<Error> ControlServer::asked_by(Course& course, const AskerId& asker) {
  auto& request = course.request();
  const std::string owner = owner_of(asker, request.source);
  if (const auto client = clients_.find(course.client()); client != clients_.end())
    make_known(*client->second, owner);
  const std::uint64_t user = asker.value_or(0);
  const bool is_administrator = asker && user == 0;
  if (bounds_.under_way.belongs_to(request, user))
    return is_administrator ? std::nullopt : too_much_answered(course, owner);
  limit_reached(Limit::requests_waiting_per_user_max);
  return Error{ErrorCode::busy, std::to_string(bounds_.under_way.of_user(user)) +
                                    " requests of this user are under way already; try again"};
}

/// Charges the asker for a reply that may be long. The asker is charged, not its source, so that other users
/// of the source are not affected.
std::optional<Error> ControlServer::too_much_answered(Course& course, const std::string& owner) {
  if (!course.may_be_long()) return std::nullopt;
  if (const auto taken = bounds_.replies.take_estimate(owner, pace_.now())) {
    course.paid(owner, *taken);
    return std::nullopt;
  }
  ++throttled_;
  return Error{ErrorCode::busy, "too many long replies to this user or source address; try again"};
}

void ControlServer::request_ended(std::uint64_t client) {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return;
  found->second->request_ends();
  note_use(*found->second);
}

/// Records whether the connection may be evicted.
void ControlServer::note_use(const ControlConnection& client) {
  if (!client.waits_for_answers())
    known_.set(client.id(), client.unread() > 0 ? Eviction::later : Eviction::first);
}

std::size_t ControlServer::answer(const ControlConnection::Envelope& to, const protocol::Reply& reply) {
  const auto client = clients_.find(to.client);
  if (client == clients_.end()) return 0;
  auto made = within_memory([&] { return protocol::to_json(reply); });
  const std::string text = made ? std::move(*made) : protocol::to_json(protocol::Reply(no_memory_for({})));
  TurnWork::add(text.size() * TurnWork::answer_byte_written);
  client->second->answer(to, text);
  return text.size();
}

/// Moves a connection over which a request was permitted from `handshakes_` to `known_`. Beyond the limit,
/// evicts connections of the owner with most; libzmq reconnects them when they ask again. Exceeds the limit
/// while that owner's connections all wait for replies.
void ControlServer::make_known(ControlConnection& client, const std::string& owner) {
  handshakes_.leave(client);
  known_.put(client.id(), owner, Eviction::excluded);
  while (known_.size() > limits_.connections_max) {
    const auto ended = known_.oldest_of_most();
    if (!ended) return;
    limit_reached(Limit::control_connections_max);
    clients_.at(*ended)->close(
        "evicted: too many connections to the control socket, and this one was idle longest of its user's");
  }
}

// --- Unread replies ---

/// Enforces the limits on unread replies. The client with most unread bytes is closed, so that others are not
/// affected.
void ControlServer::unread_changed(ControlConnection& client, std::size_t before) {
  const std::string& source = client.source().key;
  bounds_.unread.change(source, before, client.unread());
  note_use(client);
  if (client.unread() <= before) return;
  if (client.unread() > limits_.answers_unread_bytes_max)
    return give_up(client, Limit::answers_unread_bytes_max);
  const auto& bounds = bounds_.unread.bounds();
  while (bounds_.unread.of(source) > bounds.per_key && give_up_least_reading(&source)) {
  }
  while (bounds_.unread.total() > bounds.total && give_up_least_reading(nullptr)) {
  }
}

void ControlServer::give_up(ControlConnection& client, Limit reached) {
  limit_reached(reached);
  bounds_.unread.change(client.source().key, client.unread(), 0);
  client.give_up();
}

bool ControlServer::give_up_least_reading(const std::string* source) {
  ControlConnection* found = nullptr;
  for (const auto& [id, client] : clients_) {
    if (source != nullptr && client->source().key != *source) continue;
    if (found == nullptr || client->unread() > found->unread()) found = client.get();
  }
  if (found == nullptr || found->unread() == 0) return false;
  give_up(*found, Limit::answers_unread_bytes_total);
  return true;
}

}  // namespace lightq::broker
