/// Reads the statistics of many topics, a bounded number in each turn of the event loop. Layer: topic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <lightq/base/limits.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>
#include <lightq/protocol/control.hpp>

#include "admission/turn_share.hpp"
#include "net/event_loop.hpp"
#include "topic/reactor/stats_of_topics.hpp"

namespace lightq::broker {

/// Visits topics in the order of the question. One call of it takes about a millisecond (TurnShare). It then
/// waits for its turn among the other sources that are called by turns, so that 100,000 topics delay no
/// message by more than that. Walks run one after the other, in the order of
/// `begin`. The reactor owns it. Thread: the reactor's.
class StatsWalk final : public EventLoop::Source {
 public:
  /// Returns a topic's statistics; nothing if the topic does not exist any more.
  using Read = std::function<std::optional<protocol::TopicStats>(TopicId)>;
  /// Receives a topic's statistics. Returns false to end the walk.
  using Visit = std::function<bool(std::optional<protocol::TopicStats> stats)>;
  /// Called once, at the end of the walk. Errors: shutting_down if it was not finished before `stop`.
  using Done = std::function<void(Result<void>)>;

  // The work of reading, in bytes of TurnWork.
  static constexpr std::uint64_t topic_work_bytes = 4 * limits::KiB;
  static constexpr std::uint64_t entry_work_bytes = 1 * limits::KiB;

  StatsWalk(EventLoop& loop, Read read) : loop_(loop), read_(std::move(read)) {}
  ~StatsWalk() override { loop_.cancel_soon(*this); }

  /// Calls `visit` for each topic in later turns of the loop, then `done`. After `stop`, only calls `done`,
  /// within this call.
  void begin(std::vector<TopicId> topics, Visit visit, Done done);
  /// Ends all walks within this call, without reading further topics. Later walks end as they begin.
  void stop();
  void on_ready() override;

 private:
  struct Walk {
    std::vector<TopicId> topics;
    std::size_t next = 0;  // of topics
    Visit visit;
    Done done;
  };

  void step();

  EventLoop& loop_;
  const Read read_;
  TurnShare share_;
  std::deque<Walk> walks_;  // the front one is under way
  bool stopped_ = false;
};

}  // namespace lightq::broker
