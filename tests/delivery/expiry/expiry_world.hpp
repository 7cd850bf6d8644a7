/// A topic with messages that expire, for tests. It can be restarted on the same log.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lightq/base/compression.hpp>

#include "delivery/consumer_group_harness.hpp"

namespace lightq::test {

/// Forwards to another log, which outlives it: so two topics can use one log after another.
class LentLog final : public log::BatchLog {
 public:
  explicit LentLog(log::BatchLog& log) : log_(log) {}
  log::AppendResult append(std::span<std::byte> batch, Timestamp now) override {
    return log_.append(batch, now);
  }
  log::ReadResult read(log::ReadPosition& place) override { return log_.read(place); }
  log::ReadResult read_header(log::ReadPosition& place) override { return log_.read_header(place); }
  log::FoundByTime first_since(Timestamp time) override { return log_.first_since(time); }
  [[nodiscard]] Offset first_offset() const override { return log_.first_offset(); }
  [[nodiscard]] Offset next_offset() const override { return log_.next_offset(); }
  [[nodiscard]] Offset durable_offset() const override { return log_.durable_offset(); }
  [[nodiscard]] std::uint64_t stored_bytes() const override { return log_.stored_bytes(); }
  void trim(Offset before) override { log_.trim(before); }
  bool make_room(std::size_t bytes, Offset limit) override { return log_.make_room(bytes, limit); }
  bool drop_first(Offset limit, std::size_t bytes) override { return log_.drop_first(limit, bytes); }
  [[nodiscard]] const Error& last_error() const override { return log_.last_error(); }

 private:
  log::BatchLog& log_;
};

/// A message to publish: its number is its payload.
struct TtlMessage {
  std::int64_t ttl_ms = 0;  ///< 0: none
  bool letter = false;      ///< it has a header of a dead letter
};

class ExpiryWorld {
 public:
  explicit ExpiryWorld(std::uint64_t message_ttl_ms = 0, std::uint64_t bytes = 4 * limits::MiB,
                       protocol::Overflow overflow = protocol::Overflow::block)
      : ring_bytes(bytes), log({.capacity_bytes = bytes}) {
    settings.broker_type = protocol::BrokerType::queue;
    settings.ring_bytes = bytes;
    settings.overflow = overflow;
    settings.message_ttl_ms = message_ttl_ms;
    start();
  }

  /// Publishes one batch. The payload of a message is its offset.
  broker::PublishOutcome publish(const std::vector<TtlMessage>& messages, Codec codec = Codec::none) {
    BatchBuilder batch;
    const bool any = std::ranges::any_of(messages, [](const TtlMessage& each) { return each.ttl_ms != 0; });
    const AttributeKinds kinds(any ? AttributeKinds::headers : std::uint16_t{0});
    std::uint64_t number = log.next_offset().value;
    const Header dead{"lightq-dead-cause", "attempts"};
    for (const TtlMessage& each : messages) {
      Attributes attributes;
      attributes.ttl = std::chrono::milliseconds(each.ttl_ms);
      if (each.letter) attributes.headers = {&dead, 1};
      batch.add(as_byte_view(std::to_string(number++)), attributes, kinds | AttributeKinds(attributes));
    }
    pack(batch, codec);
    return topic->publish(batch, wall);
  }
  broker::PublishOutcome publish(std::size_t count, std::int64_t ttl_ms = 0) {
    return publish(std::vector<TtlMessage>(count, TtlMessage{ttl_ms}));
  }

  broker::ClientError join(Member& member, const broker::ConsumeRequest& open = asked()) {
    const auto opened = topic->groups().open(open, first_life, 0);
    if (opened.refusal != broker::ClientError::none) return opened.refusal;
    member.group = opened.group;
    member.member = &topic->groups().attach(*opened.group, member.consumer, open, 0);
    member.member->begin();
    return broker::ClientError::none;
  }
  void leave(Member& member) {
    topic->groups().detach(*member.group, *std::exchange(member.member, nullptr), now);
  }
  /// Opens a group without a consumer.
  broker::ConsumerGroup& open_group(const std::string& name = "default") {
    auto open = asked(name);
    open.start = {broker::StartPosition::From::first, 0};
    return *topic->groups().open(open, first_life, 0).group;
  }
  bool dispatch() {
    bool progress = false;
    for (bool more = true; more;) {
      const broker::Topic::DispatchResult result = topic->dispatch({.now = now, .wall = wall});
      more = result.more;
      progress |= result.progress;
      if (after_dispatch) after_dispatch();
    }
    return progress;
  }
  void pass(std::chrono::milliseconds time) {
    now += time;
    wall.us += std::chrono::microseconds(time).count();
  }
  /// Lets time pass, and dispatches as the broker does: when the topic asks for it.
  void live(std::chrono::milliseconds time) {
    const broker::SteadyTime end = now + time;
    for (;;) {
      dispatch();
      const broker::SteadyTime next =
          std::min({topic->next_timer(), topic->expiry().next_timer(wall, now), next_expiry()});
      if (next > end) break;
      pass(std::max(std::chrono::ceil<std::chrono::milliseconds>(next - now), std::chrono::milliseconds(1)));
    }
    if (now < end) pass(std::chrono::ceil<std::chrono::milliseconds>(end - now));
    dispatch();
  }
  /// Makes a new topic on the same log, with the groups as they are saved.
  void restart() {
    const auto stored = stored_cursors(topic->groups(), clocks());
    const auto mark = topic->expiry().mark();
    start();
    topic->expiry().note_stored(mark);
    restore_cursors(*topic, stored, clocks());
  }
  /// Makes a new topic on the same log as a start after a crash does. `mark`: the one that was saved last.
  void crash(std::optional<Offset> mark) {
    const auto stored = stored_cursors(topic->groups(), clocks());
    start();
    topic->expiry().note_stored(mark, 60'000'000);
    restore_cursors(*topic, stored, clocks());
  }
  [[nodiscard]] broker::ClockReading clocks() const { return {now, wall}; }
  [[nodiscard]] protocol::GroupStats stats(const std::string& group = "default") const {
    for (const auto& stats : topic->stats(wall).groups) {
      if (stats.group == group) return stats;
    }
    return {};
  }
  void set(const protocol::GroupSettings& of_group) {
    topic->groups().set_settings("default", {of_group, TopicId{9}});
    dispatch();
  }

  const broker::LogLives first_life{77};
  Timestamp wall{1'700'000'000'000'000};
  broker::SteadyTime now{std::chrono::hours(1)};
  protocol::TopicSettings settings;
  broker::GroupLimits group_limits;  ///< for the topic after the next restart
  const std::uint64_t ring_bytes;
  log::RingLog log;
  std::unique_ptr<TopicOnLog> topic;
  std::function<void()> after_dispatch;  ///< called after each dispatch, before any time passes

 private:
  /// Returns when the wall clock shows the time at which the topic wants to dispatch, unless it is set.
  [[nodiscard]] broker::SteadyTime next_expiry() const {
    const Timestamp due = topic->expiry().next_due();
    if (due == broker::ExpiryTimes::nothing_due) return broker::never;
    return now + std::chrono::microseconds(std::max<std::int64_t>(due.us - wall.us, 0));
  }
  void start() {
    topic.reset();
    topic =
        std::make_unique<TopicOnLog>(broker::TopicDefinition{TopicId{1}, *TopicName::parse("t"), settings},
                                     std::make_unique<LentLog>(log), wall, group_limits);
  }
};

}  // namespace lightq::test
