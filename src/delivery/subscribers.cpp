/// Dispatch to a topic's subscribers, and their statistics. Layer: delivery.
#include "delivery/subscribers.hpp"

#include <algorithm>

#include <lightq/base/limits.hpp>

#include "admission/turn_work.hpp"
#include "delivery/consumer_groups.hpp"

namespace lightq::broker {

namespace {
// The most work of one dispatch to decompress messages for subscribers.
constexpr std::uint64_t subscribers_work_max = 1 * limits::MiB;
}  // namespace

Subscriber& Subscribers::add(std::optional<Offset> from) {
  const Offset next = log_.next_offset();
  subscribers_.push_back(std::make_unique<Subscriber>(std::min(from.value_or(next), next)));
  return *subscribers_.back();
}

void Subscribers::remove(Subscriber& subscriber) {
  detach(subscriber);
  std::erase_if(subscribers_, [&](const auto& owned) { return owned.get() == &subscriber; });
}

void Subscribers::attach(Subscriber& subscriber, RecordSink& consumer) {
  if (!subscriber.attached()) ++attached_;
  if (direct_) subscriber.skip_to(log_.next_offset());
  subscriber.attach(consumer);
}

void Subscribers::detach(Subscriber& subscriber) {
  if (!subscriber.attached()) return;
  --attached_;
  const auto delivered_before = subscriber.delivered();
  subscriber.detach();
  deliveries_ -= delivered_before - subscriber.delivered();
}

void Subscribers::pause(Subscriber& subscriber) {
  if (!subscriber.attached()) return;
  --attached_;
  subscriber.pause();
}

void Subscribers::finish_all() {
  for (const auto& subscriber : subscribers_) subscriber->finish_up_to(log_.next_offset());
}

Subscribers::DispatchResult Subscribers::dispatch_each(const DeliveryContext& context, DamageCount& damage) {
  DispatchResult result;
  const std::uint64_t work_from = TurnWork::bytes();
  for (auto at = subscribers_.begin(); at != subscribers_.end(); ++at) {
    if (TurnWork::bytes() - work_from > subscribers_work_max) {
      std::rotate(subscribers_.begin(), at, subscribers_.end());
      result.more = true;
      return result;
    }
    Subscriber& subscriber = **at;
    const auto dispatched = subscriber.dispatch(log_, context);
    timer_ = std::min(timer_, subscriber.next_timer());
    damage.note(subscriber.take_damage());
    deliveries_ += dispatched.messages;
    result.bytes += dispatched.bytes;
    result.more |= dispatched.more;
    if (dispatched.messages > 0) result.furthest = std::max(result.furthest, subscriber.next());
  }
  return result;
}

void Subscribers::pass_expired() {
  for (const auto& subscriber : subscribers_) subscriber->pass_expired(*expiry_);
}

void Subscribers::pass_dropped(Offset first, const log::OffsetSet* carried) {
  for (const auto& subscriber : subscribers_) subscriber->pass_dropped(first, carried, *expiry_);
}

const Error* Subscribers::unavailable() const {
  const Error* why = nullptr;
  for (auto at = subscribers_.begin(); why == nullptr && at != subscribers_.end(); ++at)
    why = (*at)->unavailable();
  return why;
}

Offset Subscribers::furthest() const {
  Offset furthest{};
  for (const auto& subscriber : subscribers_) furthest = std::max(furthest, subscriber->next());
  return furthest;
}

protocol::SubscriberStats Subscribers::stats(const Subscriber& subscriber) const {
  const Offset first = log_.first_offset();
  const Offset next = subscriber.next();
  protocol::SubscriberStats stats;
  stats.connected = subscriber.attached();
  stats.next_offset = next.value;
  // The subscriber has not yet tried to read messages that the log has dropped in front of it. It will
  // receive those that were carried over.
  const log::OffsetSet* const expired = expiry_ == nullptr ? nullptr : &expiry_->expired();
  const DropCounts dropped = dropped_in({next, first}, carried_offsets(log_), expired, false);
  const OffsetRange ahead{next, log_.next_offset()};
  const std::uint64_t expired_ahead = expired == nullptr ? 0 : expired->count_in(ahead);
  stats.expired = subscriber.expired() + expired_ahead;
  stats.delivered = subscriber.delivered();
  stats.lost = subscriber.lost() + dropped.lost;
  stats.lag = distance(ahead.begin, ahead.end) - expired_ahead - dropped.lost;
  stats.blocked_by = blocked_by_disk(subscriber.unavailable());
  return stats;
}

}  // namespace lightq::broker
