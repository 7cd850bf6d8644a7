/// A topic in memory with groups, for tests of groups.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <lightq/base/compression.hpp>

#include "delivery/fake_consumer.hpp"
#include "delivery/fake_record_sink.hpp"
#include "delivery/state/log_lives.hpp"
#include "delivery/stored_cursors.hpp"
#include "delivery/topic_on_log.hpp"

namespace lightq::test {

/// Returns the request of a consumer that receives all messages and acknowledges them. Tests change the
/// fields that they need.
inline broker::ConsumeRequest asked(std::string group = "",
                                    broker::GroupMode mode = broker::GroupMode::group) {
  broker::ConsumeRequest open;
  open.mode = mode;
  open.credit.messages = 1'000'000;
  open.credit.bytes = 1'000'000'000;
  open.group = std::move(group);
  return open;
}

/// A fake consumer and its membership of a group.
struct Member {
  FakeConsumer consumer;
  broker::ConsumerGroup* group = nullptr;
  broker::GroupMember* member = nullptr;
};

/// Compresses the records if that makes them smaller.
inline void pack(BatchBuilder& batch, Codec codec) {
  Compressor compressor;
  const auto packed = compressor.compress(codec, batch.records());
  if (packed && packed->size() + sizeof(std::uint32_t) < batch.records().size())
    batch.replace_records(codec, *packed);
}

class GroupWorld {
 public:
  explicit GroupWorld(protocol::BrokerType type = protocol::BrokerType::queue,
                      protocol::Overflow overflow = protocol::Overflow::block,
                      std::uint64_t ring_bytes = limits::MiB)
      : topic({TopicId{1},
               *TopicName::parse("t"),
               {.broker_type = type, .ring_bytes = ring_bytes, .overflow = overflow}},
              ring_bytes, wall) {}

  /// Makes a topic of a reactor. Its groups together keep at most `ranges_max` ranges, and 64 bytes of sets
  /// each.
  explicit GroupWorld(std::size_t ranges_max, const broker::GroupLimits& group_limits = {},
                      std::uint64_t ring_bytes = limits::MiB)
      : budget(ranges_max),
        topic({TopicId{1},
               *TopicName::parse("t"),
               {.broker_type = protocol::BrokerType::queue, .ring_bytes = ring_bytes}},
              ring_bytes, wall, group_limits, &budget) {}

  /// Publishes one batch.
  broker::PublishOutcome publish(const std::vector<std::string>& payloads) {
    BatchBuilder batch;
    for (const auto& payload : payloads) batch.add(as_byte_view(payload), attributes);
    pack(batch, codec);
    return topic.publish(batch, wall);
  }
  /// Publishes the messages `from` to `to` - 1 in one batch. Each has its number as payload.
  void publish_numbers(int from, int to) {
    std::vector<std::string> payloads;
    for (int i = from; i < to; ++i) payloads.push_back(std::to_string(i));
    publish(payloads);
  }
  broker::ClientError join(Member& member, const broker::ConsumeRequest& open, std::uint64_t user = 0) {
    const auto opened = topic.groups().open(open, first_life, user);
    if (opened.refusal != broker::ClientError::none) return opened.refusal;
    member.group = opened.group;
    member.member = &topic.groups().attach(*opened.group, member.consumer, open, user);
    member.member->begin();
    return broker::ClientError::none;
  }
  void leave(Member& member) { topic.groups().detach(*member.group, *std::exchange(member.member, nullptr)); }
  void acknowledge(Member& member, std::vector<OffsetRange> ranges) {
    member.group->acknowledge(*member.member, {std::nullopt, std::move(ranges)});
  }
  void acknowledge_before(Member& member, std::uint64_t before) {
    member.group->acknowledge(*member.member, {Offset{before}, {}});
  }
  void reject(Member& member, OffsetRange range, std::uint32_t ms = 0) {
    member.group->reject(*member.member, {ms, {range}}, now);
  }
  void dispatch() {
    for (bool more = true; more;) {
      const broker::Topic::DispatchResult result = topic.dispatch({.now = now, .wall = wall});
      held_back += result.held_back;
      more = result.more;
    }
  }
  void pass(std::chrono::milliseconds time) {
    now += time;
    wall.us += std::chrono::microseconds(time).count();
  }
  [[nodiscard]] broker::ClockReading clocks() const { return {now, wall}; }
  /// Returns the cursor of a group as it is stored.
  log::NamedCursor stored(const std::string& group = "default") {
    for (auto& cursor : stored_cursors(topic.groups(), clocks())) {
      if (cursor.name.ends_with(":" + group)) return cursor;
    }
    return {};
  }
  [[nodiscard]] protocol::GroupStats stats(const std::string& group = "default") const {
    for (const auto& stats : topic.stats(wall).groups) {
      if (stats.group == group) return stats;
    }
    return {};
  }

  static constexpr std::uint64_t incarnation = 77;
  const broker::LogLives first_life{incarnation};
  Codec codec = Codec::none;  ///< of the published batches
  Attributes attributes;      ///< of the published messages
  Timestamp wall{1'000'000};
  broker::SteadyTime now{std::chrono::hours(1)};
  broker::RangeBudget budget;
  TopicOnLog topic;
  std::uint64_t held_back = 0;  ///< groups with a redelivery queue that became full
};

}  // namespace lightq::test
