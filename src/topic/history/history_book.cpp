/// The histories of the topics of one reactor. Layer: topic.
#include "topic/history/history_book.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace lightq::broker {

namespace {
std::uint64_t second_of(HistoryBook::Time time) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count());
}
}  // namespace

void HistoryBook::begin(TopicId topic, Time now) {
  const std::uint64_t second = second_of(now);
  if (is_stopped_ || (histories_.size() >= topics_max_ && !make_room(second))) return;
  const auto flow = read_(topic);
  if (!flow || (flow->in == 0 && flow->out == 0 && flow->pending == 0)) return;
  // Counters begin at 0. If a topic may have moved before without a history, that part is left out.
  const TopicFlow before = was_full_ ? *flow : TopicFlow{};
  histories_.emplace(topic.value, std::make_unique<Entry>(Entry{TopicHistory(second, before), second}));
  arm(now);
}

/// Drops the history that has been still longest, if it was still for a minute. Looks once a second.
bool HistoryBook::make_room(std::uint64_t second) {
  was_full_ = true;
  if (std::exchange(sought_, second) == second) return false;
  const auto stillest = std::min_element(
      histories_.begin(), histories_.end(),
      [](const auto& one, const auto& other) { return one.second->changed < other.second->changed; });
  if (stillest == histories_.end() || stillest->second->changed + still_seconds_min > second) return false;
  histories_.erase(stillest);
  return true;
}

void HistoryBook::sample(Time now) {
  // The second that has just ended.
  const std::uint64_t second = second_of(now) - 1;
  for (auto each = histories_.begin(); each != histories_.end();) {
    Entry& entry = *each->second;
    const auto flow = read_(TopicId{each->first});
    if (flow && entry.history.add(second, *flow)) entry.changed = second;
    const bool is_over = flow && flow->pending == 0 && entry.changed + still_seconds_max < second;
    if (flow && !is_over) {
      ++each;
      continue;
    }
    was_full_ = was_full_ || flow.has_value();
    each = histories_.erase(each);
  }
}

void HistoryBook::arm(Time now) {
  if (loop_ == nullptr || is_armed_ || is_stopped_ || histories_.empty()) return;
  is_armed_ = true;
  const Time next{std::chrono::seconds(second_of(now) + 1)};
  timer_ = loop_->at(next, [this] {
    is_armed_ = false;
    const Time time = EventLoop::Clock::now();
    sample(time);
    arm(time);
  });
}

void HistoryBook::stop() {
  is_stopped_ = true;
  if (is_armed_) loop_->cancel(timer_);
  is_armed_ = false;
}

TopicCourse HistoryBook::course_of(TopicId topic) const {
  const auto found = histories_.find(topic.value);
  return found == histories_.end() ? TopicCourse{} : found->second->history.course();
}

}  // namespace lightq::broker
