/// A topic's delayed messages, as the topic and its users see them. Layer: topic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

#include "delayed/delayed_message.hpp"
#include "delivery/state/client_error.hpp"
#include "store/topic_store.hpp"
#include "topic/found_topic.hpp"
#include "topic/reactor_context.hpp"
#include "topic/runtime/produce_target.hpp"
#include "topic/runtime/state_owners.hpp"
#include "topic/runtime/topic_activity.hpp"
#include "topic/runtime/topic_publishing.hpp"

namespace lightq::broker {

/// The parts of a topic that its schedule uses. Lifetime: all of them outlive the schedule.
struct ScheduleOwner {
  ReactorContext& context;
  Topic& topic;
  TopicStore& store;  ///< the topic's own
  TopicPublishing& publishing;
  TopicActivity& activity;
  const StateOwners& owners;
};

/// A topic's schedule of delayed messages. Most topics have none: the first producer that opens it makes it,
/// and a start opens the one that it finds. TopicRuntime owns it; sessions, commands and the topic's ticks
/// call it. Implementation: HostedSchedule. Thread: the reactor's.
class TopicSchedule {
 public:
  using Answered = std::function<void(const Result<std::uint64_t>&)>;

  TopicSchedule() = default;
  TopicSchedule(const TopicSchedule&) = delete;
  TopicSchedule& operator=(const TopicSchedule&) = delete;
  virtual ~TopicSchedule() = default;

  /// Starts the schedule that a start has found. If it cannot be read, that is logged, and the topic works
  /// without it. Its messages then count in the topic's capacity as ScheduleLimits::least_charge. Later uses
  /// and ticks try again, at most once a second. Until one succeeds, `target`, `list` and `act` return the
  /// error, and `stats` states it.
  virtual void start(std::unique_ptr<FoundSchedule> found) = 0;

  /// Returns the target for a producer of delayed messages. It lives as long as the topic. Errors:
  /// not_supported (a direct topic); those of opening the schedule.
  virtual Result<ProduceTarget*> target() = 0;

  // Commands. Each call does a bounded piece of about a millisecond; call again from the result's `next`.

  /// Lists messages in the order of their due times, from `from` on, at most `most`.
  virtual Result<DelayedList> list(const DelayedFilter& filter, DuePosition from, std::size_t most) = 0;
  /// Acts on messages. `due`: the new due time of `reschedule`, the same in all pieces. With numbers in the
  /// filter it goes by number, otherwise by due time. Call answer_when_durable at last. Errors:
  /// invalid_argument (`due` is too far ahead), io_error, no_space: some messages may have been changed.
  virtual Result<DelayedPiece> act(DelayedAction action, const DelayedFilter& filter, DuePosition from,
                                   Timestamp due) = 0;
  /// Calls `answered` with `messages`, perhaps within this call, when all changes so far survive a power cut,
  /// as far as the topic can. Errors: shutting_down, topic_not_found, io_error.
  virtual void answer_when_durable(std::uint64_t messages, const Answered& answered) = 0;

  /// Returns true if the topic has a schedule, even one that cannot be read: it has had a producer of
  /// delayed messages.
  [[nodiscard]] virtual bool is_made() const = 0;
  [[nodiscard]] virtual DelayedStats stats() const = 0;
  /// Returns the number of connected producers of delayed messages.
  [[nodiscard]] virtual std::size_t connected() const = 0;

  // For TopicRuntime.

  /// Does periodic work: the topic may have space, and more of its log may be durable. Returns true if
  /// another tick is wanted.
  virtual bool tick(Timestamp now) = 0;
  virtual void begin_stop(ClientError why, const char* sentence) = 0;
  virtual void flush_for_stop() = 0;
  [[nodiscard]] virtual bool is_idle_on_disk() const = 0;
  /// Requires: !is_idle_on_disk().
  virtual void when_idle_on_disk(std::function<void()> call) = 0;
};

/// Makes the schedule of a topic, without opening it. `known`: the topic's own producers. `open` makes the
/// schedule's files; empty: the topic cannot have a schedule. Lifetime: all references outlive the result.
std::unique_ptr<TopicSchedule> make_topic_schedule(const ScheduleOwner& owner, const DurableProducers& known,
                                                   OpenSchedule open);

}  // namespace lightq::broker
