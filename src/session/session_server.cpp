/// Accepts sessions, and checks tickets and limits. Layer: session.
#include "session/session_server.hpp"

#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

#include "admission/connection_quota.hpp"
#include "admission/fair_share.hpp"
#include "net/request_source.hpp"

namespace lightq::broker {

namespace {
// A ticket is needed only to connect. A client that reconnects later joins again.
constexpr auto ticket_lifetime = std::chrono::minutes(10);
static_assert(ticket_lifetime <= ticket_clock_tolerance, "a short ticket_ms would refuse the ticket");
}  // namespace

SessionServer::SessionServer(ReactorContext& context, FindTopic find_topic, const SessionSettings& settings,
                             std::string name)
    : context_(context), find_topic_(std::move(find_topic)), settings_(settings), name_(std::move(name)) {
  if (context_.settings.curve_key != nullptr) authorizer_.encrypt(*context_.settings.curve_key, nullptr);
}

SessionServer::~SessionServer() = default;

Result<SessionServer::Joined> SessionServer::join(const Grant& grant, protocol::Transport transport,
                                                  SessionCarrier carrier, const TicketHolder& holder) {
  if (stopping_) return Error{ErrorCode::shutting_down, "the broker is stopping"};
  auto opened = open_listener({transport, carrier});
  if (!opened) return opened.error();
  const SessionListener& listener = **opened;
  std::optional<protocol::Tls> tls;
  if (listener.tls != nullptr) tls = protocol::Tls{listener.tls->fingerprint()};
  return Joined{listener.bind_uri, context_.tickets.issue(grant, ticket_lifetime, context_.now(), holder),
                std::move(tls)};
}

void SessionServer::open_doors() {
  for (const auto carrier : {SessionCarrier::stream, SessionCarrier::zmtp}) {
    const auto opened = open_listener({protocol::Transport::tcp, carrier});
    if (!opened)
      context_.sink.warn("sessions: cannot open an address; the next join tries again: " +
                         opened.error().text());
  }
}

Result<SessionServer::SessionListener*> SessionServer::open_listener(Way way) {
  if (const auto found = listeners_.find(way); found != listeners_.end()) return found->second.get();
  const auto [transport, carrier] = way;
  const bool is_unix = transport == protocol::Transport::ipc;
  const std::string file =
      context_.settings.ipc_prefix + name_ + (carrier == SessionCarrier::zmtp ? "z.sock" : ".sock");
  const std::string path = is_unix ? (context_.settings.ipc_directory / file).string() : std::string();
  auto socket = is_unix ? listen_unix(path) : context_.ports.listen({.guarded = true});
  if (!socket) return socket.error();
  const std::uint16_t port = socket->port;
  const std::string uri =
      is_unix ? "ipc://" + path
              : "tcp://" + uri_host(context_.settings.advertise_host) + ":" + std::to_string(port);
  const TlsContext* const tls = encryption_of(way);
  auto made = std::make_unique<SessionListener>(*this, std::move(*socket), carrier, tls, uri);
  if (!made->listener.start()) {
    made.reset();
    if (!is_unix) context_.ports.release(port, {.guarded = true}, true);
    return Error{ErrorCode::io_error, "cannot watch the new endpoint " + uri};
  }
  context_.sink.info((carrier == SessionCarrier::zmtp ? "sessions over ZeroMQ: "
                      : tls != nullptr                ? "sessions over TLS: "
                                                      : "sessions: ") +
                     uri);
  return (listeners_[way] = std::move(made)).get();
}

void SessionServer::SessionListener::accept_failed() {
  server.context_.handshakes.make_room();
  server.limit_reached(Limit::descriptors_reserved);
  server.context_.sink.error("sessions " + bind_uri +
                             ": a connection was refused, because no file descriptor is free");
}

/// ZeroMQ sessions have their own encryption. Unix sockets are protected by file permissions.
const TlsContext* SessionServer::encryption_of(Way way) const {
  const auto [transport, carrier] = way;
  const bool by_tls = transport == protocol::Transport::tcp && carrier == SessionCarrier::stream;
  return by_tls ? settings_.tls : nullptr;
}

/// Begins a session with the peer. Returns true if the session was admitted within the call.
bool SessionServer::begin_session(UniqueFd descriptor, SessionCarrier carrier, const TlsContext* tls) {
  SessionConnection::Host& host = *this;
  const std::string source = source_of(descriptor.get()).key;
  auto session = std::make_unique<SessionConnection>(context_.loop, std::move(descriptor), *this,
                                                     context_.scratch, host, next_session_++, carrier, tls);
  SessionConnection* const made = session.get();
  sessions_.emplace(made, std::move(session));
  context_.handshakes.enter(*made, source);
  const std::size_t admitted_before = admitted_;
  if (!made->start()) made->close("the event loop cannot watch the connection");
  return admitted_ > admitted_before;
}

/// Takes a place for an authenticated session. HandshakeQueue counts unauthenticated peers.
std::string_view SessionServer::admit(std::uint64_t user) {
  const std::string_view objection = take_place(user, admitted_);
  if (objection.empty()) ++admitted_;
  return objection;
}

std::string_view SessionServer::admit_also(std::uint64_t user) {
  return take_place(user, admitted_ - 1);  // it has a place
}

/// Takes a place for one more session of the user, where `taken` others are admitted.
std::string_view SessionServer::take_place(std::uint64_t user, std::size_t taken) {
  const auto verdict = FairShare(context_.settings.connections_max).ask(taken, user, admitted_of_.of(user));
  if (verdict != FairShare::Verdict::room) {
    limit_reached(Limit::connections_per_endpoint_max);
    return verdict == FairShare::Verdict::full ? "the maximum number of sessions is open"
                                               : "the user (or all anonymous clients together) has many "
                                                 "sessions, and the last places are reserved for other users";
  }
  auto* const quota = context_.settings.user_connections;
  if (quota != nullptr && !quota->take(user))
    return "the user (or all anonymous clients together) has the maximum of connections "
           "(connections_per_user)";
  if (user != 0) admitted_of_.add(user);
  return {};
}

void SessionServer::give_back(const SessionConnection& session) {
  --admitted_;
  for (const std::uint64_t user : session.tickets().users()) {
    admitted_of_.give_back(user);
    if (auto* const quota = context_.settings.user_connections; quota != nullptr) quota->give_back(user);
  }
}

void SessionServer::session_opened(SessionConnection& session) {
  context_.handshakes.leave(session);
  context_.sink.debug("session " + std::to_string(session.id()) + " of '" + session.name() + "' begins");
}

void SessionServer::connection_closed(Connection& connection, const std::string& why) {
  const auto found = sessions_.find(&connection);
  if (found == sessions_.end()) return;
  const SessionConnection& session = *found->second;
  context_.handshakes.leave(connection);
  const std::string which = "session " + std::to_string(session.id());
  if (session.tickets().is_admitted()) {
    give_back(session);
    context_.sink.debug(which + " of '" + session.name() + "' ended: " + why);
  } else {
    context_.accepts.unauthenticated_closed(EventLoop::Clock::now());
    if (session.tickets().is_refused()) ++context_.refused_connections;
    context_.sink.info(which + " was refused: " + why);
  }
  context_.loop.destroy_later(std::move(found->second));
  sessions_.erase(found);
}

std::optional<SessionServer::Permit> SessionServer::permit_of(std::string_view ticket) {
  const auto verdict = context_.tickets.check(ticket, context_.now());
  if (!verdict.grant) return std::nullopt;
  const Permit permit{*verdict.grant, verdict.holder};
  const TopicName* const topic = name_of(permit.grant.topic);
  if (topic == nullptr || !permits(permit, *topic, find_topic_(permit.grant.topic), GroupScope::some_group()))
    return std::nullopt;
  return permit;
}

/// A ticket without a user is valid only while the topic is open to all.
bool SessionServer::permits(const Permit& permit, const TopicName& name, const TopicRuntime* topic,
                            const GroupScope& scope) const {
  const bool nobodys = permit.holder == TicketHolder{};
  if (nobodys && topic != nullptr && topic->definition().settings.open) return true;
  return context_.access.permits(permit.holder, permit.grant, name, scope);
}

const TopicName* SessionServer::name_of(TopicId topic) const {
  const TopicRuntime* const found = find_topic_(topic);
  return found == nullptr ? nullptr : &found->definition().name;
}

bool SessionServer::is_good(const Permit& permit, const TopicRuntime& topic, const GroupScope& scope) const {
  return permits(permit, topic.definition().name, &topic, scope);
}

bool SessionServer::may_manage(const Permit& permit, const TopicRuntime& topic,
                               const GroupScope& scope) const {
  if (permit.holder == TicketHolder{}) return false;
  return context_.access.may_manage(permit.holder, topic.definition().id, topic.definition().name, scope);
}

void SessionServer::look_at_rights_of(std::uint64_t user) {
  for (const auto& [key, session] : sessions_) {
    if (session->tickets().users().contains(user)) session->look_at_rights();
  }
}

void SessionServer::look_at_rights_on(TopicId topic) {
  for (const auto& [key, session] : sessions_) {
    if (session->tickets().has_ticket_for(topic)) session->look_at_rights();
  }
}

void SessionServer::begin_stop() {
  stopping_ = true;
  for (const auto& [way, listener] : listeners_) listener->listener.stop();
  std::vector<SessionConnection*> sessions;
  for (const auto& [key, session] : sessions_) sessions.push_back(session.get());
  for (SessionConnection* const session : sessions) {
    session->end_session(session::Code::shutting_down, "the broker is stopping");
  }
}

}  // namespace lightq::broker
