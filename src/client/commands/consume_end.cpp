/// Decides when `lightq consume --no-follow` has received all messages. Layer: cli.
#include "client/commands/consume_end.hpp"

#include <algorithm>

namespace lightq::cli {

void ConsumeEnd::came(OffsetRange range) {
  next_ = std::max(next_, range.end);
  incarnation_ = consumer_.opened()->incarnation;
  seemed_over_ = false;
  interval_ = look_interval;
  next_look_ = {};
}

bool ConsumeEnd::has_come() {
  const auto now = std::chrono::steady_clock::now();
  if (!consumer_.connected() || now < next_look_) return false;
  const Result<TopicStats> stats = client_.stats(consume_.topic);
  const bool over = stats && look(*stats);
  interval_ = std::min(interval_ * 2, look_interval_max);
  next_look_ = now + interval_;
  return over;
}

void ConsumeEnd::look_for_pause() {
  const auto now = std::chrono::steady_clock::now();
  if (!consumer_.connected() || now < next_pause_look_) return;
  if (const Result<TopicStats> stats = client_.stats(consume_.topic); stats) printer_.tell_of_pause(*stats);
  pause_interval_ = std::min(pause_interval_ * 2, pause_interval_max);
  next_pause_look_ = now + pause_interval_;
}

bool ConsumeEnd::look(const TopicStats& stats) {
  printer_.tell_of_pause(stats);
  if (consume_.mode == Mode::sub && has_all_of_place(stats)) return true;
  const bool is_empty = is_group_empty(stats);
  const bool is_done = std::ranges::all_of(stats.groups, [&](const GroupStats& group) {
    return !is_ours(group) || group.committed_offset >= stats.next_offset;
  });
  // Messages that other consumers have in flight are not waited for. But a message that another consumer has
  // just given up may not be dispatched again yet. So, unless everything is committed, the group must be
  // empty at two checks in a row.
  const bool over = is_empty && (is_done || seemed_over_);
  seemed_over_ = is_empty;
  return over;
}

bool ConsumeEnd::has_all_of_place(const TopicStats& stats) {
  const session::ConsumeOpened& opened = *consumer_.opened();
  if (opened.incarnation != incarnation_) {
    incarnation_ = opened.incarnation;
    next_ = Offset{opened.next};
  }
  return std::max(next_.value, stats.first_offset) >= stats.next_offset;
}

bool ConsumeEnd::is_group_empty(const TopicStats& stats) {
  return std::ranges::all_of(stats.groups, [&](const GroupStats& group) {
    if (!is_ours(group)) return true;
    const bool on_its_way = group.consumers <= 1 && group.unacknowledged > 0;
    return group.ready == 0 && !on_its_way;
  });
}

bool ConsumeEnd::is_ours(const GroupStats& group) const {
  if (consume_.mode == Mode::sub) return group.mode == "own" && group.group == consume_.group;
  return group.group == (consume_.group.empty() ? protocol::default_group : consume_.group);
}

}  // namespace lightq::cli
