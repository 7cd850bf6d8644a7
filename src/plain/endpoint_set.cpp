/// Opens, serves and closes a topic's endpoints. Layer: plain.
#include "plain/endpoint_set.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "admission/connection_quota.hpp"
#include "admission/fair_share.hpp"
#include "admission/turn_work.hpp"
#include "plain/raw_consumer_connection.hpp"
#include "plain/zmtp_consumer_connection.hpp"
#include "topic/reactor/topic_authorizer.hpp"

namespace lightq::broker {

using protocol::ConnectionType;
using protocol::JoinType;
using protocol::Transport;

EndpointSet::~EndpointSet() {
  for (auto& [id, entry] : entries_) entry.endpoint->shut();
}

std::optional<Error> EndpointSet::no_place_for(std::uint64_t user) const {
  const std::size_t most = context_.settings.endpoints_max;
  const std::string has = "topic " + topic_.definition().name.text() + " has ";
  const auto own = std::count_if(entries_.begin(), entries_.end(), [user](const auto& entry) {
    return entry.second.endpoint->record().user == user;
  });
  const std::size_t all = entries_.size() + unopened_.all().size();
  const auto verdict = FairShare(most).ask(all, user, static_cast<std::size_t>(own));
  if (verdict == FairShare::Verdict::room) return std::nullopt;
  count(context_.settings.limits_reached, Limit::endpoints_per_topic_max);
  if (verdict == FairShare::Verdict::full) {
    return Error{ErrorCode::limit_reached,
                 has + std::to_string(all) + " endpoints, the maximum (endpoints_per_topic_max)"};
  }
  return Error{ErrorCode::limit_reached, has + std::to_string(own) +
                                             " endpoints of this user, and reserves " +
                                             std::to_string(most - all) + " for users with fewer"};
}

ConnectionAuthorizer EndpointSet::gate_for(EndpointRole role) const {
  return authorizer_of(context_.tickets, context_.now, context_.settings, context_.access,
                       topic_.definition(), role);
}

Result<EndpointSet::Entry*> EndpointSet::open(const EndpointRecord& record,
                                              std::optional<TicketHolder> joined_by) {
  if (const auto refused = joined_by ? no_place_for(record.user) : std::nullopt) return *refused;
  const ConnectionAuthorizer authorizer = gate_for(record.role);
  // A raw consumer cannot show a ticket.
  if (record.connection_type == ConnectionType::socket && !authorizer.is_open()) {
    return Error{ErrorCode::not_supported, "connection_type: socket needs an open topic, and " +
                                               topic_.definition().name.text() + " is not"};
  }
  const bool is_raw_tcp =
      record.connection_type == ConnectionType::socket && record.transport == Transport::tcp;
  if (is_raw_tcp && authorizer.curve() != nullptr) {
    return Error{ErrorCode::not_supported,
                 "connection_type: socket over tcp does not encrypt, and this broker encrypts: use transport "
                 "ipc, or connection_type zmq"};
  }
  if (const auto refused = places_.take(record, joined_by, authorizer)) return *refused;
  auto entry = start(record, !joined_by, authorizer);
  if (!entry) places_.give_back(record.id);
  return entry;
}

Result<EndpointSet::Entry*> EndpointSet::start(EndpointRecord record, bool again,
                                               const ConnectionAuthorizer& authorizer) {
  TurnWork::add(TurnWork::endpoint_opened);
  auto socket = addresses_.listen(record, again, authorizer);
  if (!socket) {
    if (socket.error().code == ErrorCode::limit_reached) places_.say_refused(Limit::ports, socket.error());
    return socket.error();
  }
  auto endpoint = std::make_unique<Endpoint>(context_, *this, record, std::move(*socket),
                                             addresses_.bind_uri_of(record), authorizer);
  if (!endpoint->start()) {
    const PortUse use = endpoint->use();
    endpoint.reset();
    if (record.transport == Transport::tcp) context_.ports.release(record.port, use, true);
    return Error{ErrorCode::io_error, "cannot watch the new endpoint " + addresses_.bind_uri_of(record)};
  }
  if (again) endpoint->expect_back();
  Entry& entry = entries_[record.id];
  entry.endpoint = std::move(endpoint);
  return &entry;
}

void EndpointSet::make_room(const EndpointShares::Place& lost) {
  const auto found = entries_.find(lost.id);
  if (found == entries_.end()) return;
  const Endpoint& endpoint = *found->second.endpoint;
  if (endpoint.was_used()) {
    context_.settings.endpoint_shares->add(lost);  // a peer has connected meanwhile
    return;
  }
  context_.sink.info(addresses_.name_of(endpoint) +
                     " closes: no client has connected yet, and another endpoint needs its place");
  close(lost.id, true);
}

/// Returns the error that a connection of the holder would meet now. The join can report it, while a refused
/// plain connection gets no reason. `shared`: the existing endpoint of the topic's producers.
std::optional<Error> EndpointSet::no_connection_for(const TicketHolder& holder,
                                                    const Endpoint* shared) const {
  auto* const quota = context_.settings.user_connections;
  auto refused = quota == nullptr ? std::nullopt : quota->objection(holder.sharer());
  if (!refused && shared != nullptr) refused = shared->no_place_for(holder.sharer());
  return refused;
}

Result<OpenedEndpoint> EndpointSet::join(JoinType type, Transport transport, ConnectionType connection_type,
                                         const TicketHolder& holder) {
  assert(connection_type == ConnectionType::zmq || type == JoinType::pull);
  const EndpointRole role = role_of(type);
  if (role == EndpointRole::produce) {
    unopened_.try_all();  // one of them may be the endpoint to answer with
    for (auto& [id, entry] : entries_) {
      const auto& record = entry.endpoint->record();
      if (record.role != role || record.transport != transport) continue;
      if (const auto refused = no_connection_for(holder, entry.endpoint.get())) return *refused;
      entry.endpoint->touch();
      return opened(*entry.endpoint, false, holder);
    }
  }
  const bool is_raw = connection_type == ConnectionType::socket;  // a raw connection cannot name its user
  if (const auto refused = no_connection_for(is_raw ? TicketHolder{} : holder, nullptr)) return *refused;
  EndpointRecord record;
  record.id = context_.next_endpoint_id++;
  record.topic = topic_.definition().id;
  record.role = role;
  record.transport = transport;
  record.connection_type = connection_type;
  if (role != EndpointRole::produce) record.user = holder.user;
  auto entry = open(record, holder);
  if (!entry) return entry.error();
  if (role == EndpointRole::sub) (*entry)->subscriber = &topic_.subscribers().add(std::nullopt);
  if (role == EndpointRole::pull) topic_.open_group();
  return opened(*(*entry)->endpoint, true, holder);
}

OpenedEndpoint EndpointSet::opened(const Endpoint& endpoint, bool is_new, const TicketHolder& holder) const {
  const auto& record = endpoint.record();
  OpenedEndpoint opened{record, endpoint.bind_uri(), is_new, {}};
  if (record.connection_type == ConnectionType::zmq) {
    opened.ticket = context_.tickets.issue({record.topic, record.role}, context_.settings.ticket_lifetime,
                                           context_.now(), holder);
  }
  return opened;
}

Result<std::uint64_t> EndpointSet::leave(const std::string& bind_uri, const Leaver& by) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) {
    const Endpoint& each = *entry.second.endpoint;
    return each.bind_uri() == bind_uri && !each.leaving() && by.may_leave(each.record());
  });
  if (found == entries_.end()) return leave_unopened(bind_uri, by);
  Endpoint& endpoint = *found->second.endpoint;
  if (endpoint.record().role == EndpointRole::produce) return std::uint64_t{0};  // shared: closes when unused
  std::uint64_t handed = found->second.handed_to_the_gone;
  for (auto& [outlet, consumer] : consumers_) {
    if (consumer.endpoint != &endpoint) continue;
    outlet->retire();
    handed += outlet->handed();
  }
  endpoint.leave();
  // Reported now, not when the last connection has ended: a broker that starts meanwhile must not open the
  // endpoint again.
  context_.events.closed(endpoint.record());
  if (endpoint.connected() == 0) close(endpoint.record().id, false);
  return handed;
}

void EndpointSet::close(std::uint64_t id, bool tell) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  Endpoint& endpoint = *found->second.endpoint;
  endpoint.shut();
  if (found->second.subscriber != nullptr) topic_.subscribers().remove(*found->second.subscriber);
  context_.ports.release(endpoint.record().port, endpoint.use(), !endpoint.was_used());
  places_.give_back(id);
  if (tell && !endpoint.leaving())
    context_.events.closed(endpoint.record());  // leave() has already reported it
  context_.loop.destroy_later(std::move(found->second.endpoint));
  entries_.erase(found);
}

void EndpointSet::endpoint_done(Endpoint& endpoint, const std::string& why) {
  context_.sink.info(addresses_.name_of(endpoint) + " closes: " + why);
  close(endpoint.record().id, true);
}

void EndpointSet::endpoint_full(Endpoint& endpoint) {
  context_.sink.warn(addresses_.name_of(endpoint) + ": refusing connections, because it has the maximum of " +
                     std::to_string(context_.settings.connections_max) + " (connections_per_endpoint_max)");
}

void EndpointSet::accept_failed(Endpoint& endpoint) {
  count(context_.settings.limits_reached, Limit::descriptors_reserved);
  context_.sink.error(addresses_.name_of(endpoint) +
                      ": a connection was refused, because no file descriptor is free");
}

std::unique_ptr<ZmtpConnection> EndpointSet::make_connection(Endpoint& endpoint, UniqueFd descriptor) {
  if (endpoint.record().role == EndpointRole::produce) {
    return std::make_unique<PlainProducerConnection>(context_.loop, std::move(descriptor), endpoint,
                                                     context_.scratch, inlet_host_);
  }
  auto outlet = make_outlet(endpoint, std::move(descriptor));
  consumers_[outlet.get()].endpoint = &endpoint;
  return outlet;
}

std::unique_ptr<PlainConsumerConnection> EndpointSet::make_outlet(Endpoint& endpoint, UniqueFd descriptor) {
  auto& loop = context_.loop;
  auto& scratch = context_.scratch;
  if (endpoint.record().role == EndpointRole::sub) {
    return std::make_unique<SubConsumerConnection>(loop, std::move(descriptor), endpoint, scratch, *this,
                                                   topic_.definition().name);
  }
  if (endpoint.record().connection_type == ConnectionType::socket) {
    return std::make_unique<RawConsumerConnection>(loop, std::move(descriptor), endpoint, scratch, *this);
  }
  return std::make_unique<PullConsumerConnection>(loop, std::move(descriptor), endpoint, scratch, *this);
}

/// Returns true if a subscriber's endpoint belongs to this user. User 0 is the administrator, or an
/// unauthenticated client of an open topic, where no ticket names the user. The topic's own user gets another
/// id with each password.
bool EndpointSet::owns_place(const EndpointRecord& record, std::uint64_t user) const {
  if (user == 0 || user == FairShare::anonymous || user == record.user) return true;
  const AccessTable& access = context_.access;
  return record.user != 0 && access.is_topics_own(user, record.topic) && !access.has_user(record.user);
}

void EndpointSet::consumer_ready(PlainConsumerConnection& outlet) {
  Consumer& consumer = consumers_.at(&outlet);
  if (consumer.endpoint->record().role == EndpointRole::pull) {
    topic_.attach_puller(outlet);
  } else {
    Entry& entry = entries_.at(consumer.endpoint->record().id);
    // The endpoint's cursor goes to the first connection of its own user. Any other connection gets a
    // separate cursor, which ends with that connection.
    const bool first = entry.subscriber != nullptr && !entry.subscriber->attached();
    const bool takes_place = first && owns_place(consumer.endpoint->record(), outlet.holder().user);
    consumer.subscriber = takes_place ? entry.subscriber : &topic_.subscribers().add(std::nullopt);
    topic_.subscribers().attach(*consumer.subscriber, outlet);
  }
  listener_.consumers_changed();
}

/// Called when a consumer has unsubscribed and stays connected. Messages that were already dispatched to it
/// are still sent, and its cursor keeps its position.
void EndpointSet::consumer_unready(PlainConsumerConnection& outlet) {
  Consumer& consumer = consumers_.at(&outlet);
  if (consumer.subscriber == nullptr) return;
  topic_.subscribers().pause(*consumer.subscriber);
  release_subscriber(consumer);
  listener_.consumers_changed();
}

void EndpointSet::consumer_gone(PlainConsumerConnection& outlet) {
  Consumer& consumer = consumers_.at(&outlet);
  if (consumer.endpoint->record().role == EndpointRole::pull) {
    topic_.detach_puller(outlet);
  } else if (consumer.subscriber != nullptr) {
    topic_.subscribers().detach(*consumer.subscriber);
    release_subscriber(consumer);
  }
  listener_.consumers_changed();
}

/// Detaches the consumer's cursor. Removes it unless it is the endpoint's own.
void EndpointSet::release_subscriber(Consumer& consumer) {
  Subscriber* const subscriber = std::exchange(consumer.subscriber, nullptr);
  const auto entry = entries_.find(consumer.endpoint->record().id);
  const bool lasting = entry != entries_.end() && entry->second.subscriber == subscriber;
  if (!lasting) topic_.subscribers().remove(*subscriber);
}

void EndpointSet::connection_ending(Endpoint& endpoint, ZmtpConnection& connection, const std::string& why) {
  if (connection.unauthorized()) {
    ++refused_connections_;
    ++context_.refused_connections;
  }
  if (connection.was_open()) {
    context_.sink.debug(addresses_.name_of(endpoint) + ": disconnected: " + why);
  } else {
    context_.sink.info(addresses_.name_of(endpoint) + ": a connection was refused: " + why);
  }
  if (endpoint.record().role == EndpointRole::produce) return;
  auto& outlet = static_cast<PlainConsumerConnection&>(connection);
  const auto entry = entries_.find(endpoint.record().id);
  if (entry != entries_.end()) entry->second.handed_to_the_gone += outlet.handed() - outlet.unsent().size();
  if (outlet.ready()) consumer_gone(outlet);
  consumers_.erase(&outlet);
}

bool EndpointSet::resume_inlets() {
  std::vector<PlainProducerConnection*> held;
  for (auto& [id, entry] : entries_) {
    if (entry.endpoint->record().role != EndpointRole::produce) continue;
    entry.endpoint->for_each_connection([&](ZmtpConnection& connection) {
      auto& inlet = static_cast<PlainProducerConnection&>(connection);
      if (inlet.held()) held.push_back(&inlet);
    });
  }
  // Begins with another producer each time, because the first one may take all the free space.
  for (std::size_t i = 0; i < held.size(); ++i) {
    if (!held[(i + resume_turn_) % held.size()]->resume()) {
      resume_turn_ += i + 1;
      return false;
    }
  }
  return true;
}

void EndpointSet::tend_held(bool all) {
  for (auto& [id, entry] : entries_) {
    if (entry.endpoint->record().role != EndpointRole::produce) continue;
    entry.endpoint->for_each_connection([all](ZmtpConnection& connection) {
      if (static_cast<PlainProducerConnection&>(connection).spent())
        return connection.close("closed by the peer");
      connection.keep_alive(all);
    });
  }
}

void EndpointSet::end_unpermitted() {
  // A copy: a leaving endpoint is removed from entries_ together with its last connection, and destroyed at
  // the turn's end.
  std::vector<Endpoint*> endpoints;
  for (auto& [id, entry] : entries_) endpoints.push_back(entry.endpoint.get());
  for (Endpoint* const endpoint : endpoints) endpoint->end_unpermitted();
}

void EndpointSet::close_all(bool tell) {
  while (const auto unopened = unopened_.take([](const EndpointRecord&) { return true; }))
    close_unopened(*unopened, tell);
  while (!entries_.empty()) close(entries_.begin()->first, tell);
}

void EndpointSet::stop_accepting() {
  unopened_.stop();
  for (auto& [id, entry] : entries_) entry.endpoint->stop_accepting();
}

bool EndpointSet::all_sent() {
  return std::all_of(consumers_.begin(), consumers_.end(),
                     [](const auto& entry) { return entry.first->all_sent(); });
}

void EndpointSet::release_idle_memory() {
  for (auto& [id, entry] : entries_) {
    entry.endpoint->for_each_connection([](ZmtpConnection& connection) { connection.release_idle_memory(); });
  }
}

void EndpointSet::add_stats(protocol::TopicStats& stats) {
  stats.subscribers_count = 0;
  stats.refused_connections = refused_connections_;
  for (const auto& [id, entry] : entries_) {
    const std::size_t connected = entry.endpoint->connected();
    auto& count = entry.endpoint->record().role == EndpointRole::produce ? stats.publishers_count
                                                                         : stats.subscribers_count;
    count += connected;
    if (entry.subscriber == nullptr) continue;
    auto subscriber = topic_.subscribers().stats(*entry.subscriber);
    subscriber.bind_uri = entry.endpoint->bind_uri();
    subscriber.connected = connected > 0;
    stats.subscribers.push_back(std::move(subscriber));
  }
  for (const auto& [id, unopened] : unopened_.all()) {
    if (unopened.subscriber == nullptr) continue;
    auto subscriber = topic_.subscribers().stats(*unopened.subscriber);
    subscriber.bind_uri = addresses_.bind_uri_of(unopened.record);
    stats.subscribers.push_back(std::move(subscriber));
  }
}

std::vector<log::NamedCursor> EndpointSet::subscriber_cursors() const {
  std::vector<log::NamedCursor> cursors;
  for (const auto& [id, entry] : entries_) {
    if (entry.subscriber == nullptr) continue;
    cursors.push_back({subscriber_cursor_name(id), entry.subscriber->committed()});
  }
  for (const auto& [id, unopened] : unopened_.all()) {
    if (unopened.subscriber == nullptr) continue;
    cursors.push_back({subscriber_cursor_name(id), unopened.subscriber->committed()});
  }
  return cursors;
}

}  // namespace lightq::broker
