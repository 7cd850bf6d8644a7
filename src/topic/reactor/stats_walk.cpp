/// Reads the statistics of many topics, a bounded number in each turn of the event loop. Layer: topic.
#include "topic/reactor/stats_walk.hpp"

#include <utility>

#include "admission/turn_work.hpp"

namespace lightq::broker {

namespace {
Error ended_by_stop() {
  return {ErrorCode::shutting_down, "the broker is stopping"};
}
}  // namespace

void StatsWalk::begin(std::vector<TopicId> topics, Visit visit, Done done) {
  if (stopped_) return done(ended_by_stop());
  walks_.push_back({std::move(topics), 0, std::move(visit), std::move(done)});
  if (walks_.size() == 1) loop_.call_by_turns(*this);
}

void StatsWalk::on_ready() {
  share_.begin();
  while (!walks_.empty()) {
    step();
    if (share_.use_up()) break;
  }
  if (!walks_.empty()) loop_.call_by_turns(*this);
}

void StatsWalk::stop() {
  stopped_ = true;
  loop_.cancel_soon(*this);
  for (const auto walks = std::exchange(walks_, {}); const Walk& walk : walks) walk.done(ended_by_stop());
}

/// Visits the next topic of the first walk, or ends that walk.
void StatsWalk::step() {
  Walk& walk = walks_.front();
  bool more = walk.next < walk.topics.size();
  if (more) {
    auto stats = read_(walk.topics[walk.next++]);
    TurnWork::add(topic_work_bytes + (stats ? (entries_of(*stats) - 1) * entry_work_bytes : 0));
    more = walk.visit(std::move(stats)) && walk.next < walk.topics.size();
  }
  if (more) return;
  const auto done = std::move(walk.done);
  walks_.pop_front();  // first, because `done` may begin another walk
  done({});
}

}  // namespace lightq::broker
