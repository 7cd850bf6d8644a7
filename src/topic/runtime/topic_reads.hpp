/// Reads of a topic's messages by their offsets, without a cursor. Layer: topic.
#pragma once

#include <utility>
#include <vector>

#include "delivery/offset_search.hpp"
#include "delivery/topic.hpp"
#include "topic/reactor_context.hpp"
#include "topic/runtime/topic_activity.hpp"

namespace lightq::broker {

/// Waits until messages that a read has reported as pending can be read. Thread: the reactor's.
class ReadWaiter {
 public:
  virtual ~ReadWaiter() = default;
  /// Called once, when messages that a read has reported as pending may be readable, or the topic stops.
  virtual void readable() = 0;
};

/// Reads messages for sessions, and wakes those that wait for pending messages. TopicRuntime owns
/// it; sessions and the store's reports call it. Thread: the reactor's.
class TopicReads {
 public:
  /// Lifetime: all parameters outlive this.
  TopicReads(ReactorContext& context, Topic& topic, TopicActivity& activity)
      : context_(context), topic_(topic), activity_(activity) {}

  /// Delivers messages from the reader's position on to `turn`, for a session's `read`. reader.loss() counts
  /// the messages that were skipped.
  template <DispatchTurn Turn>
  TurnEnd read(RecordReader& reader, Turn& turn) {
    const Timestamp now = context_.now();
    activity_.used_at(now);
    activity_.want_ticks();  // memory that is kept for reading is released after a while without reads
    return topic_.read(reader, turn, {.now = context_.loop.call_time(), .wall = now});
  }
  /// Returns the offset of a place: see offset_of. Only an offset may be before the first message of the log,
  /// where messages may still be pending.
  [[nodiscard]] Result<Offset> find(const StartPosition& place) {
    if (place.from == StartPosition::From::offset) return Offset{place.value};
    return offset_of(place, topic_.log());
  }
  /// Calls waiter.readable() once, when pending messages can be read or the topic stops. Requires: the waiter
  /// does not wait yet. Lifetime: the waiter calls `forget` before it is destroyed, unless readable() was
  /// called.
  void await(ReadWaiter& waiter) { waiters_.push_back(&waiter); }
  void forget(ReadWaiter& waiter) { std::erase(waiters_, &waiter); }
  /// Calls all waiters.
  void wake() {
    for (ReadWaiter* const waiter : std::exchange(waiters_, {})) waiter->readable();
  }

 private:
  ReactorContext& context_;
  Topic& topic_;
  TopicActivity& activity_;
  std::vector<ReadWaiter*> waiters_;
};

}  // namespace lightq::broker
