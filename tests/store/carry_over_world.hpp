/// A topic in a ring that carries waiting messages over, for tests.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "delivery/consumer_group_harness.hpp"
#include "log/carried/carried_memory.hpp"
#include "store/memory_store.hpp"

namespace lightq::broker {

using test::Member;

inline constexpr std::uint64_t ring_bytes = 1 * limits::MiB;
inline constexpr std::uint64_t copies_bytes = ring_bytes / 10;

/// A topic in a ring with copies, and a member of its plain group.
class CarryOverWorld {
 public:
  explicit CarryOverWorld(protocol::Overflow overflow = protocol::Overflow::block,
                          std::uint64_t copies_max = copies_bytes)
      : store(std::make_unique<log::RingLog>(log::RingLogOptions{.capacity_bytes = ring_bytes}),
              std::make_unique<log::CarriedMemory>(copies_max)),
        topic({TopicId{1}, *TopicName::parse("t"), {.ring_bytes = ring_bytes, .overflow = overflow}}, store,
              wall) {}

  void join(Member& member, const std::string& group = "") {
    const auto asked = test::asked(group);
    const auto opened = topic.groups().open(asked, lives);
    ASSERT_EQ(opened.refusal, ClientError::none);
    member.group = opened.group;
    member.member = &topic.groups().attach(*opened.group, member.consumer, asked);
    member.member->begin();
  }
  PublishOutcome publish(const std::string& payload, const Attributes& attributes = {}) {
    BatchBuilder batch;
    batch.add(as_byte_view(payload), attributes);
    return topic.publish(batch, wall);
  }
  void pass(std::chrono::milliseconds time) {
    now += time;
    wall.us += std::chrono::microseconds(time).count();
  }
  void dispatch() {
    for (bool more = true; more;) more = topic.dispatch({.now = now, .wall = wall}).more;
  }
  /// Lets the member acknowledge all that it has.
  static void acknowledge_all(Member& member) {
    member.consumer.frames.clear();
    member.group->acknowledge(*member.member, {member.group->next(), {}});
  }
  void reject(Member& member, OffsetRange range, std::uint32_t ms) {
    member.group->reject(*member.member, {ms, {range}}, now);
  }
  void kill(Member& member, OffsetRange range) {
    member.group->reject(*member.member, {.ranges = {range}, .kind = RejectKind::dead}, now);
  }
  /// Publishes and finishes messages until `rings` times the ring's bytes have passed.
  void stream(Member& member, std::uint64_t rings) {
    const std::string payload(1000, 'm');
    for (std::uint64_t bytes = 0; bytes < rings * ring_bytes; bytes += payload.size()) {
      ASSERT_EQ(publish(payload), PublishOutcome::accepted);
      dispatch();
      acknowledge_all(member);
      if (bytes % 64'000 == 0) topic.carry_over().sweep();
    }
  }
  [[nodiscard]] protocol::TopicStats stats() {
    topic.groups().give_up_dropped();
    return topic.stats(wall);
  }
  [[nodiscard]] protocol::GroupStats group_stats() { return stats().groups.at(0); }

  const LogLives lives{77};
  Timestamp wall{1'000'000};
  SteadyTime now{std::chrono::hours(1)};
  MemoryStore store;
  Topic topic;
};

}  // namespace lightq::broker
