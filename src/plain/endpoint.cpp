/// Accepts and counts an endpoint's connections. Layer: plain.
#include "plain/endpoint.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "admission/connection_quota.hpp"
#include "admission/endpoint_shares.hpp"
#include "net/request_source.hpp"

namespace lightq::broker {

Endpoint::Endpoint(ReactorContext& context, EndpointHost& host, EndpointRecord record, ListeningSocket socket,
                   std::string bind_uri, const ConnectionAuthorizer& authorizer)
    : context_(context),
      host_(host),
      record_(record),
      listener_(context.loop, std::move(socket), *this, context.accepts),
      bind_uri_(std::move(bind_uri)),
      authorizer_(authorizer),
      open_({.total = context.settings.connections_max}) {}

Endpoint::~Endpoint() {
  stop_accepting();
  context_.loop.cancel(idle_timer_);
}

bool Endpoint::start() {
  arm_idle_timer();
  return listener_.start();
}

void Endpoint::stop_accepting() {
  listener_.stop();
}

void Endpoint::shut() {
  stop_accepting();
  context_.loop.cancel(idle_timer_);
  shut_ = true;
  for_each_connection([](ZmtpConnection& connection) { connection.close("its endpoint closed"); });
}

bool Endpoint::accepted(UniqueFd descriptor) {
  // A ZeroMQ peer counts in HandshakeQueue until it has authenticated. A raw consumer never authenticates, so
  // it is counted here.
  if (record_.connection_type == protocol::ConnectionType::socket && !lets_in_raw()) return true;
  const std::string source = source_of(descriptor.get()).key;
  auto connection = host_.make_connection(*this, std::move(descriptor));
  ZmtpConnection* const key = connection.get();
  connections_.emplace(key, std::move(connection));
  context_.handshakes.enter(*key, source);
  const std::size_t open_before = open_.total();
  if (!key->start()) key->close("the event loop cannot watch the connection");
  return open_.total() <= open_before;
}

/// Returns false if the endpoint's limit is reached. Such a connection is closed immediately instead of being
/// kept waiting, and libzmq connects again.
bool Endpoint::has_room() {
  if (open_.total() < open_.bounds().total) return true;
  count(context_.settings.limits_reached, Limit::connections_per_endpoint_max);
  const auto now = EventLoop::Clock::now();
  if (said_full_ == EventLoop::Clock::time_point{} || now - said_full_ >= said_again_after) {
    said_full_ = now;
    host_.endpoint_full(*this);
  }
  return false;
}

/// Returns false if there is no place for the user: the last places are reserved for users with few
/// connections. libzmq connects again until one of the user's own connections ends.
bool Endpoint::has_room_for(const TicketHolder& holder) {
  return !no_place_for(holder.user);
}

std::optional<Error> Endpoint::no_place_for(std::uint64_t user) const {
  const auto verdict = open_.ask(user);
  if (verdict == FairShare::Verdict::room) return std::nullopt;
  count(context_.settings.limits_reached, Limit::connections_per_endpoint_max);
  const std::size_t most = open_.bounds().total;
  const std::string all = std::to_string(most) + " connections (connections_per_endpoint_max)";
  if (verdict == FairShare::Verdict::full)
    return Error{ErrorCode::limit_reached, "endpoint " + bind_uri_ + " has the maximum of " + all};
  return Error{ErrorCode::limit_reached, name_of_sharer(user) + " " + std::to_string(open_.of(user)) +
                                             " of endpoint " + bind_uri_ + "'s " + all + ", and the last " +
                                             std::to_string(most - open_.total()) +
                                             " are reserved for users with fewer"};
}

/// Counts a raw consumer as an unauthenticated client, because it cannot name its user. Returns false if
/// there is no place for it.
bool Endpoint::lets_in_raw() {
  if (!has_room() || !has_room_for({.user = FairShare::anonymous})) return false;
  auto* const quota = context_.settings.user_connections;
  return quota == nullptr || quota->take(FairShare::anonymous);
}

std::uint64_t Endpoint::sharer_of(const ZmtpConnection& connection) const {
  const bool is_raw = record_.connection_type == protocol::ConnectionType::socket;
  return is_raw ? FairShare::anonymous : connection.holder().user;
}

void Endpoint::connection_opened(Connection& connection) {
  open_.add(sharer_of(static_cast<const ZmtpConnection&>(connection)));
  if (!was_used_) expect_back();
  context_.handshakes.leave(connection);
  context_.loop.cancel(idle_timer_);
}

void Endpoint::connection_closed(Connection& ended, const std::string& why) {
  const auto found = connections_.find(&ended);
  if (found == connections_.end()) return;
  ZmtpConnection& connection = *found->second;
  context_.handshakes.leave(connection);
  if (!connection.was_open()) context_.accepts.unauthenticated_closed(EventLoop::Clock::now());
  if (auto* const quota = context_.settings.user_connections; quota != nullptr)
    quota->give_back(sharer_of(connection));
  host_.connection_ending(*this, connection, why);
  if (connection.was_open()) open_.give_back(sharer_of(connection));
  context_.loop.destroy_later(std::move(found->second));
  connections_.erase(found);
  if (open_.total() > 0 || shut_) return;
  if (leaving_) return host_.endpoint_done(*this, "its consumer left");
  if (connection.was_open()) arm_idle_timer();
}

std::size_t Endpoint::connected() const {
  return static_cast<std::size_t>(
      std::count_if(connections_.begin(), connections_.end(),
                    [](const auto& entry) { return entry.first->is_open() && !entry.first->peer_gone(); }));
}

void Endpoint::touch() {
  if (open_.total() == 0) arm_idle_timer();
}

void Endpoint::expect_back() {
  was_used_ = true;
  if (auto* const shares = context_.settings.endpoint_shares; shares != nullptr) shares->used(record_.id);
}

void Endpoint::leave() {
  leaving_ = true;
  stop_accepting();
  arm_idle_timer();
}

void Endpoint::arm_idle_timer() {
  context_.loop.cancel(idle_timer_);
  idle_timer_ = context_.loop.at(EventLoop::Clock::now() + context_.settings.idle_time_max, [this] {
    host_.endpoint_done(*this, leaving_ ? "its consumer left" : "no client was connected");
  });
}

void Endpoint::end_unpermitted() {
  for_each_connection([this](ZmtpConnection& connection) {
    if (!authorizer_.permits(connection.holder())) connection.close("its user no longer has the right");
  });
}

void Endpoint::for_each_connection(const std::function<void(ZmtpConnection&)>& call) {
  std::vector<ZmtpConnection*> connections;
  for (const auto& entry : connections_) connections.push_back(entry.second.get());
  for (ZmtpConnection* const connection : connections) call(*connection);
}

}  // namespace lightq::broker
