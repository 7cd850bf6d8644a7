/// The subscribers of a topic: their cursors, their turns, and the counts of what they received. Layer:
/// delivery.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>
#include <lightq/protocol/control.hpp>

#include "delivery/record_sink.hpp"
#include "delivery/state/damage_count.hpp"
#include "delivery/state/delivery_context.hpp"
#include "delivery/state/group_time.hpp"
#include "delivery/subscriber.hpp"
#include "log/log.hpp"

namespace lightq::broker {

/// Owns the subscribers of one topic: adds and removes them, connects their consumers, and dispatches to them
/// in turn. A subscriber never holds the log against the overflow policy.
/// Topic owns it and dispatches; EndpointSet adds and connects subscribers. Thread: the reactor's.
class Subscribers {
 public:
  /// Creates an empty set. `direct`: a subscriber receives nothing from the time without its consumer.
  /// Lifetime: the log outlives the set.
  Subscribers(log::BatchLog& log, bool direct) : log_(log), direct_(direct) {}
  Subscribers(const Subscribers&) = delete;
  Subscribers& operator=(const Subscribers&) = delete;

  /// Adds a subscriber at `from`, or at the next message. Lifetime: until remove.
  Subscriber& add(std::optional<Offset> from);
  /// Disconnects the subscriber's consumer, and destroys the subscriber.
  void remove(Subscriber& subscriber);

  void attach(Subscriber& subscriber, RecordSink& consumer);
  /// Disconnects the consumer. Its unsent messages no longer count as delivered.
  void detach(Subscriber& subscriber);
  /// Stops delivery to the subscriber. Its consumer stays connected and receives the messages that its
  /// connection has taken.
  void pause(Subscriber& subscriber);
  /// Returns the number of subscribers with a connected consumer.
  [[nodiscard]] std::size_t attached() const { return attached_; }

  /// Pauses or resumes delivery to all subscribers. Everything else works.
  void set_paused(bool paused) { paused_ = paused; }
  /// Moves every cursor behind all stored messages. Messages that connections have taken count as finished.
  void finish_all();

  /// Sets the topic's expired messages; null: none expires. Lifetime: until the next call.
  void set_expiry(const ExpiryIndex* expiry) { expiry_ = expiry; }
  /// Moves each cursor behind the expired messages at it. Requires: set_expiry with other than null.
  void pass_expired();
  /// Moves each cursor up to `first`; see Subscriber::pass_dropped. Requires: as for pass_expired.
  void pass_dropped(Offset first, const log::OffsetSet* carried);

  struct DispatchResult {
    std::uint64_t bytes = 0;  ///< payload bytes delivered
    Offset furthest{};        ///< highest next() among the subscribers that received messages
    bool more = false;        ///< consumers could take more now: dispatch again soon
  };
  /// Dispatches to each subscriber in turn. If finding and unpacking messages takes too much work, it returns
  /// early with `more`. The next dispatch then begins with the next subscriber.
  DispatchResult dispatch(const DeliveryContext& context, DamageCount& damage) {
    timer_ = never;
    return subscribers_.empty() || paused_ ? DispatchResult{} : dispatch_each(context, damage);
  }
  /// Returns when to call `dispatch` next to try to read again, or `never` unless messages are unavailable().
  [[nodiscard]] SteadyTime next_timer() const { return timer_; }
  /// Returns why the consumer of the first affected subscriber waits; see Subscriber::unavailable.
  [[nodiscard]] const Error* unavailable() const;

  /// Returns the lowest of `passed` and the offsets below which no subscriber needs the messages. In a
  /// `direct` topic only those with a connected consumer count.
  [[nodiscard]] Offset passed_up_to(Offset passed) const {
    for (const auto& subscriber : subscribers_)
      if (!direct_ || subscriber->attached()) passed = std::min(passed, subscriber->committed());
    return passed;
  }
  /// Returns the highest next offset of all subscribers, or 0 if there are none.
  [[nodiscard]] Offset furthest() const;

  /// Returns the number of messages delivered to all subscribers, including those that were removed.
  [[nodiscard]] std::uint64_t deliveries() const { return deliveries_; }
  /// Returns the subscriber's statistics. The endpoints add its address.
  [[nodiscard]] protocol::SubscriberStats stats(const Subscriber& subscriber) const;

 private:
  DispatchResult dispatch_each(const DeliveryContext& context, DamageCount& damage);

  log::BatchLog& log_;
  const ExpiryIndex* expiry_ = nullptr;
  std::vector<std::unique_ptr<Subscriber>> subscribers_;  // the next dispatch begins with the first
  SteadyTime timer_ = never;
  std::uint64_t deliveries_ = 0;
  std::uint32_t attached_ = 0;
  const bool direct_;
  bool paused_ = false;
};

}  // namespace lightq::broker
