/// Serves single requests for the messages of one reactor's topics. Layer: requests.
#include "requests/message_desk.hpp"

#include <algorithm>
#include <utility>

#include <lightq/base/limits.hpp>
#include <lightq/base/random.hpp>

#include "requests/request_errors.hpp"

namespace lightq::broker {

namespace {

// A new group of a durable topic is stored before it delivers.
constexpr auto admission_wait = std::chrono::milliseconds(limits::http_wait_ms_default);
// In this time a group delivers the messages that it has.
constexpr auto wait_min = std::chrono::milliseconds(5);

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
  const std::uint64_t id = next_publication_++;
  const auto wait = messages.wait;
  Waiting& waiting = publications_[id];
  waiting.publication =
      std::make_unique<Publication>(*runtime, reactor.context().access, requester, std::move(messages),
                                    std::move(done), [this, &loop, id] { drop_publication(loop, id); });
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
  std::uint64_t id = 0;
  while (id == 0 || leases_.contains(id)) id = random_number<std::uint64_t>();
  Held& held = leases_[id];
  held.loop = &reactor.loop();
  held.lease = std::make_unique<Lease>(
      Lease::Parts{*runtime, reactor.context().access, requester, id, [this, id] { changed(id); }},
      std::move(wish), done);
  const auto refusal = held.lease->begin();
  if (refusal.code != ClientError::none) {
    if (refusal.code == ClientError::limit_reached)
      count(reactor.context().settings.limits_reached, limit_of_crowd(refusal.crowd));
    leases_.erase(id);
    return done(refusal_of(refusal));
  }
  set_timer(id, held, EventLoop::Clock::now() + admission_wait);
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

Result<Settled> MessageDesk::settle(Reactor& reactor, TopicId topic, const Requester& requester,
                                    std::uint64_t lease, const Settling& settling) {
  const auto found = leases_.find(lease);
  if (found == leases_.end() || found->second.lease->topic_id() != topic ||
      !found->second.lease->requester().is_same_as(requester) || found->second.lease->is_waiting())
    return Error{ErrorCode::timeout,
                 "there is no such lease of this user, or it is over: its messages are settled, or are "
                 "delivered again"};
  Held& held = found->second;
  const TopicRuntime* const runtime = reactor.find(topic);
  if (runtime == nullptr) return unknown_topic();
  if (!held.lease->requester().may(reactor.context().access, *runtime)) return right_withdrawn();
  auto settled = held.lease->settle(settling, EventLoop::Clock::now());
  changed(lease);
  return settled;
}

}  // namespace lightq::broker
