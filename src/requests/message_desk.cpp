/// Serves single requests for the messages of one reactor's topics. Layer: requests.
#include "requests/message_desk.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <lightq/base/limits.hpp>
#include <lightq/base/random.hpp>

#include "requests/request_errors.hpp"

namespace lightq::broker {

namespace {

// A new group of a durable topic is stored before it delivers.
constexpr auto admission_wait = std::chrono::milliseconds(limits::http_wait_ms_default);
// In this time a group delivers the messages that it has.
constexpr auto wait_min = std::chrono::milliseconds(5);
// Between two checks of rights.
constexpr auto watch_pause = std::chrono::seconds(1);

Error unknown_topic() {
  return {ErrorCode::topic_not_found, "topic not found"};
}

Limit limit_of_crowd(ConsumerGroups::Crowd crowd) {
  switch (crowd) {
    case ConsumerGroups::Crowd::members_of_group: return Limit::members_per_group_max;
    case ConsumerGroups::Crowd::members_of_all: return Limit::group_members_total;
    case ConsumerGroups::Crowd::groups: break;
  }
  return Limit::groups_per_topic_max;
}

Error refusal_of(const TopicConsumers::Refusal& refusal) {
  using Crowd = ConsumerGroups::Crowd;
  if (refusal.code != ClientError::limit_reached)
    return error_of(refusal.code, refusal.code == ClientError::not_supported
                                      ? "the topic has a consumer's own cursor of this name"
                                      : "the topic refuses the consumer");
  if (refusal.crowd == Crowd::groups)
    return {ErrorCode::limit_reached, "the topic has the maximum of groups and cursors"};
  return {ErrorCode::limit_reached, "there is the maximum of consumers, or of requests that are not settled"};
}

}  // namespace

void MessageDesk::publish(Reactor& reactor, TopicId topic, const Requester& requester,
                          MessagesToPublish messages, Publication::Done done) {
  TopicRuntime* const runtime = reactor.find(topic);
  if (runtime == nullptr) return done(unknown_topic());
  if (!requester.may(reactor.context().access, *runtime)) return done(right_withdrawn());
  EventLoop& loop = reactor.loop();
  const std::uint64_t id = next_number_++;
  const auto wait = messages.wait;
  Waiting& waiting = publications_[id];
  waiting.publication = std::make_unique<Publication>(
      Publication::Parts{*runtime, reactor.context().access, reactor.context().tickets, requester,
                         [this, &loop, id] { drop_publication(loop, id); }},
      std::move(messages), std::move(done));
  waiting.publication->begin();
  const auto found = publications_.find(id);
  if (found == publications_.end()) return;
  found->second.timer = loop.at(EventLoop::Clock::now() + wait, [this, id] {
    const auto late = publications_.find(id);
    if (late == publications_.end()) return;
    late->second.timer = 0;
    late->second.publication->give_up();
  });
}

/// Destroys a publication at the end of the turn, because it may be called now.
void MessageDesk::drop_publication(EventLoop& loop, std::uint64_t id) {
  const auto found = publications_.find(id);
  if (found == publications_.end()) return;
  if (found->second.timer != 0) loop.cancel(found->second.timer);
  loop.destroy_later(std::move(found->second.publication));
  publications_.erase(found);
}

void MessageDesk::lease(Reactor& reactor, TopicId topic, const Requester& requester, LeaseWish wish,
                        Lease::Done done) {
  TopicRuntime* const runtime = reactor.find(topic);
  if (runtime == nullptr) return done(unknown_topic());
  if (!requester.may(reactor.context().access, *runtime)) return done(right_withdrawn());
  if (static_cast<std::uint64_t>(wish.lasts.count()) > runtime->redelivery_ms_max())
    return done(Error{ErrorCode::invalid_request,
                      "lease: more than redelivery_ms_max, " + std::to_string(runtime->redelivery_ms_max())});
  if (!copies_.requests->has_room()) {
    count(reactor.context().settings.limits_reached, Limit::http_responses_bytes_total);
    return done(too_many_copies());
  }
  const std::uint64_t id = free_id();
  Held& held = leases_[id];
  held.loop = &reactor.loop();
  held.lease = std::make_unique<Lease>(Lease::Parts{*runtime, reactor.context().access, requester, id,
                                                    copies_.requests, [this, id] { changed(id); }},
                                       std::move(wish), done);
  const auto refusal = held.lease->begin();
  if (refusal.code != ClientError::none) {
    if (refusal.code == ClientError::limit_reached)
      count(reactor.context().settings.limits_reached, limit_of_crowd(refusal.crowd));
    leases_.erase(id);
    return done(refusal_of(refusal));
  }
  set_timer(id, held, EventLoop::Clock::now() + admission_wait);
  watch(reactor.loop());
}

std::uint64_t MessageDesk::free_id() const {
  std::uint64_t id = 0;
  while (id == 0 || leases_.contains(id) || streams_.contains(id)) id = random_number<std::uint64_t>();
  return id;
}

/// Called when a lease was admitted or answered, or has ended.
void MessageDesk::changed(std::uint64_t id) {
  const auto found = leases_.find(id);
  if (found == leases_.end()) return;
  Held& held = found->second;
  if (held.lease->is_waiting())
    return set_timer(id, held, EventLoop::Clock::now() + std::max(held.lease->wish().wait, wait_min));
  if (held.lease->is_needed()) {
    return set_timer(id, held, held.lease->check_at(EventLoop::Clock::now()));
  }
  held.loop->cancel(std::exchange(held.timer, 0));
  held.lease->leave();
  held.loop->destroy_later(std::move(held.lease));
  leases_.erase(found);
}

void MessageDesk::set_timer(std::uint64_t id, Held& held, EventLoop::Clock::time_point when) {
  if (held.timer != 0) held.loop->cancel(held.timer);
  held.timer = held.loop->at(when, [this, id] { on_timer(id); });
}

/// The time to wait for messages is over, or that to settle them: the group takes them back itself.
void MessageDesk::on_timer(std::uint64_t id) {
  const auto found = leases_.find(id);
  if (found == leases_.end()) return;
  Held& held = found->second;
  held.timer = 0;
  if (held.lease->is_waiting()) return held.lease->give_up();
  if (!held.lease->is_needed()) return changed(id);
  set_timer(id, held, held.lease->check_at(EventLoop::Clock::now()));
}

void MessageDesk::take_back(std::uint64_t lease) {
  if (const auto found = leases_.find(lease); found != leases_.end()) found->second.lease->take_back();
}

/// Looks at all leases and streams once a second, while there are some.
void MessageDesk::watch(EventLoop& loop) {
  if (std::exchange(is_watching_, true)) return;
  loop.at(EventLoop::Clock::now() + watch_pause, [this, &loop] {
    look_at_all();
    is_watching_ = false;
    if (!leases_.empty() || !streams_.empty()) watch(loop);
  });
}

/// Ends those whose rights were withdrawn, and gives streams credit for messages that were taken back. Each
/// may be removed by its call.
void MessageDesk::look_at_all() {
  std::vector<std::uint64_t> ids;
  for (const auto& [id, held] : leases_) ids.push_back(id);
  for (const auto& [id, stream] : streams_) ids.push_back(id);
  for (const std::uint64_t id : ids) {
    if (const auto lease = leases_.find(id); lease != leases_.end()) lease->second.lease->wake_if_room();
    if (const auto lease = leases_.find(id); lease != leases_.end()) lease->second.lease->look_at_rights();
    if (const auto stream = streams_.find(id); stream != streams_.end()) stream->second->wake_if_room();
    if (const auto stream = streams_.find(id); stream != streams_.end()) stream->second->give_credit();
    if (const auto stream = streams_.find(id); stream != streams_.end()) stream->second->look_at_rights();
  }
}

void MessageDesk::stream(Reactor& reactor, TopicId topic, const Requester& requester, StreamWish wish,
                         const std::shared_ptr<StreamClient>& client) {
  TopicRuntime* const runtime = reactor.find(topic);
  if (runtime == nullptr) return client->ended(unknown_topic());
  if (!requester.may(reactor.context().access, *runtime)) return client->ended(right_withdrawn());
  if (static_cast<std::uint64_t>(wish.lasts.count()) > runtime->redelivery_ms_max())
    return client->ended({ErrorCode::limit_reached, "lease: more than redelivery_ms_max, " +
                                                        std::to_string(runtime->redelivery_ms_max())});
  EventLoop& loop = reactor.loop();
  const std::uint64_t id = free_id();
  auto& stream = streams_[id];
  stream =
      std::make_unique<Stream>(Stream::Parts{*runtime, reactor.context().access, requester, id, client,
                                             copies_.streams, [this, &loop, id] { drop_stream(loop, id); }},
                               std::move(wish));
  const auto refusal = stream->begin();
  if (refusal.code != ClientError::none) {
    if (refusal.code == ClientError::limit_reached)
      count(reactor.context().settings.limits_reached, limit_of_crowd(refusal.crowd));
    streams_.erase(id);
    return client->ended(refusal_of(refusal));
  }
  loop.at(EventLoop::Clock::now() + admission_wait, [this, id] {
    if (const auto found = streams_.find(id); found != streams_.end()) found->second->give_up();
  });
  watch(loop);
}

/// Destroys a stream at the end of the turn, because it may be called now.
void MessageDesk::drop_stream(EventLoop& loop, std::uint64_t id) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  loop.destroy_later(std::move(found->second));
  streams_.erase(found);
}

void MessageDesk::written(std::uint64_t stream, const StreamAmount& taken) {
  if (const auto found = streams_.find(stream); found != streams_.end()) found->second->written(taken);
}

void MessageDesk::end_stream(std::uint64_t stream) {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  found->second->leave();
  streams_.erase(found);
}

void MessageDesk::browse(Reactor& reactor, TopicId topic, const Requester& requester, const BrowseWish& wish,
                         Browse::Done done) {
  if (!copies_.requests->has_room())
    count(reactor.context().settings.limits_reached, Limit::http_responses_bytes_total);
  EventLoop& loop = reactor.loop();
  const std::uint64_t id = next_number_++;
  const auto drop_if_over = [this, &loop, id] {
    const auto found = browses_.find(id);
    if (found != browses_.end() && found->second.browse->is_over()) drop_browse(loop, id);
  };
  Reading& reading = browses_[id];
  const auto later = [this, &loop, id, drop_if_over] {
    const auto found = browses_.find(id);
    if (found == browses_.end() || found->second.later != 0) return;
    found->second.later = loop.at(EventLoop::Clock::now(), [this, id, drop_if_over] {
      const auto due = browses_.find(id);
      if (due == browses_.end()) return;
      due->second.later = 0;
      due->second.browse->go_on();
      drop_if_over();
    });
  };
  reading.browse =
      std::make_unique<Browse>(Browse::Parts{[&reactor, topic] { return reactor.find(topic); },
                                             reactor.context().access, requester, copies_.requests, later},
                               wish, std::move(done));
  reading.end = loop.at(EventLoop::Clock::now() + wish.wait, [this, id, drop_if_over] {
    const auto late = browses_.find(id);
    if (late == browses_.end()) return;
    late->second.end = 0;
    late->second.browse->give_up();
    drop_if_over();
  });
  reading.browse->go_on();
  drop_if_over();
}

void MessageDesk::drop_browse(EventLoop& loop, std::uint64_t id) {
  const auto found = browses_.find(id);
  if (found == browses_.end()) return;
  for (const EventLoop::TimerId timer : {found->second.later, found->second.end}) {
    if (timer != 0) loop.cancel(timer);
  }
  loop.destroy_later(std::move(found->second.browse));
  browses_.erase(found);
}

MessageHolder* MessageDesk::holder_of(std::uint64_t lease) {
  if (const auto found = leases_.find(lease); found != leases_.end())
    return found->second.lease->is_waiting() ? nullptr : found->second.lease.get();
  const auto stream = streams_.find(lease);
  return stream == streams_.end() ? nullptr : stream->second.get();
}

Result<Settled> MessageDesk::settle(Reactor& reactor, TopicId topic, const Requester& requester,
                                    std::uint64_t lease, const Settling& settling) {
  MessageHolder* const holder = holder_of(lease);
  if (holder == nullptr || holder->topic_id() != topic || !holder->requester().is_same_as(requester))
    return Error{ErrorCode::timeout,
                 "there is no such lease of this user, or it is over: its messages are settled, or are "
                 "delivered again"};
  const TopicRuntime* const runtime = reactor.find(topic);
  if (runtime == nullptr) return unknown_topic();
  if (!holder->requester().may(reactor.context().access, *runtime)) return right_withdrawn();
  auto settled = holder->settle(settling, EventLoop::Clock::now());
  if (const auto stream = streams_.find(lease); stream != streams_.end()) stream->second->give_credit();
  changed(lease);
  return settled;
}

}  // namespace lightq::broker
