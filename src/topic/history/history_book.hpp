/// The histories of the topics of one reactor. Layer: topic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include <lightq/base/limits.hpp>
#include <lightq/base/types.hpp>

#include "delivery/state/topic_flow.hpp"
#include "net/event_loop.hpp"
#include "topic/history/topic_history.hpp"

namespace lightq::broker {

/// Keeps a history for each topic that has moved messages in the last hour, or has some pending; at most
/// `topics_max` of them. A topic that begins to move while there are so many takes the place of the one that
/// has been still longest, if that is a minute at least; otherwise it has no history. Only topics that move
/// are sampled: a second without a change makes a topic still, until `moved` is called for it again. While
/// all are still, a timer runs only for the end of the next history. Thread: the reactor's.
class HistoryBook {
 public:
  /// Returns a topic's counters; nothing if the topic does not exist any more.
  using Read = std::function<std::optional<TopicFlow>(TopicId)>;
  using Time = EventLoop::Clock::time_point;

  static constexpr std::uint64_t still_seconds_min = 60;    ///< before another topic may take the place
  static constexpr std::uint64_t still_seconds_max = 3600;  ///< before the history is dropped

  /// `loop`: null: the caller calls `sample` itself. It outlives the book. `topics_max`: 0: no histories.
  HistoryBook(EventLoop* loop, Read read, std::size_t topics_max = limits::history_topics_max)
      : loop_(loop), read_(std::move(read)), topics_max_(topics_max) {}
  HistoryBook(const HistoryBook&) = delete;
  HistoryBook& operator=(const HistoryBook&) = delete;
  ~HistoryBook() { stop(); }

  /// Called when a topic may have moved messages: begins or continues its history. Costs one look-up.
  void moved(TopicId topic, Time now);
  /// Reads the counters of the topics that move. Drops histories that have been still for too long.
  void sample(Time now);
  void forget(TopicId topic) { histories_.erase(topic.value); }
  /// Ends sampling.
  void stop();
  /// Returns the course of a topic until now; an empty one if it has no history.
  [[nodiscard]] TopicCourse course_of(TopicId topic, Time now);
  /// Returns when `sample` is due; nothing while no history needs it.
  [[nodiscard]] std::optional<Time> next_sample(Time now) const;
  [[nodiscard]] std::size_t size() const { return histories_.size(); }

 private:
  struct Entry {
    TopicHistory history;
    std::uint64_t changed = 0;  // the second in which the counters changed last
    bool is_still = false;      // not sampled
    bool is_pending = false;    // at the last sample, messages were pending
  };

  void begin(TopicId topic, Time now);
  [[nodiscard]] bool make_room(std::uint64_t second);
  [[nodiscard]] bool take(TopicId topic, Entry& entry, std::uint64_t second);
  void arm(std::optional<Time> next);

  EventLoop* const loop_;
  const Read read_;
  const std::size_t topics_max_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Entry>> histories_;  // by the topic's id
  std::uint64_t sought_ = 0;  // the second in which room was sought last
  bool was_full_ = false;     // a topic may have moved without a history
  bool is_stopped_ = false;
  std::optional<Time> armed_for_;
  EventLoop::TimerId timer_ = 0;
};

}  // namespace lightq::broker
