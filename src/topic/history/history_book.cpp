/// The histories of the topics of one reactor. Layer: topic.
#include "topic/history/history_book.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace lightq::broker {

namespace {
std::uint64_t second_of(HistoryBook::Time time) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count());
}

HistoryBook::Time end_of_second(HistoryBook::Time now) {
  return HistoryBook::Time(std::chrono::seconds(second_of(now) + 1));
}
}  // namespace

void HistoryBook::moved(TopicId topic, Time now) {
  const auto found = histories_.find(topic.value);
  if (found == histories_.end()) return begin(topic, now);
  if (!found->second->is_still) return;
  // Ticks call this ten times a second, so that new messages are those of this second.
  found->second->history.pass(second_of(now) - 1);
  found->second->is_still = false;
  arm(end_of_second(now));
}

void HistoryBook::begin(TopicId topic, Time now) {
  const std::uint64_t second = second_of(now);
  if (is_stopped_ || topics_max_ == 0 || (histories_.size() >= topics_max_ && !make_room(second))) return;
  const auto flow = read_(topic);
  if (!flow || (flow->in == 0 && flow->out == 0 && flow->pending == 0)) return;
  // Counters begin at 0. If a topic may have moved before without a history, that part is left out.
  const TopicFlow before = was_full_ ? *flow : TopicFlow{};
  histories_.emplace(topic.value, std::make_unique<Entry>(Entry{TopicHistory(second, before), second}));
  arm(end_of_second(now));
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
  const std::uint64_t second = second_of(now) - 1;
  for (auto each = histories_.begin(); each != histories_.end();) {
    Entry& entry = *each->second;
    const auto is_over = [&] { return entry.changed + still_seconds_max < second; };
    const bool is_due = !entry.is_still || (!entry.is_pending && is_over());
    const bool is_gone = is_due && !take({each->first}, entry, second);
    const bool has_ended = is_due && entry.is_still && !entry.is_pending && is_over();
    was_full_ = was_full_ || has_ended;
    each = is_gone || has_ended ? histories_.erase(each) : std::next(each);
  }
}

/// Takes the counters at the end of `second`. Returns false if the topic does not exist any more.
bool HistoryBook::take(TopicId topic, Entry& entry, std::uint64_t second) {
  const auto flow = read_(topic);
  if (!flow) return false;
  if (entry.is_still) entry.history.pass(second - 1);
  const bool has_changed = entry.history.add(second, *flow);
  if (has_changed) entry.changed = second;
  entry.is_still = !has_changed;
  entry.is_pending = flow->pending != 0;
  return true;
}

std::optional<HistoryBook::Time> HistoryBook::next_sample(Time now) const {
  std::optional<std::uint64_t> next;
  for (const auto& [id, entry] : histories_) {
    if (entry->is_still && entry->is_pending) continue;
    const std::uint64_t due = entry->is_still ? entry->changed + still_seconds_max + 2 : 0;
    next = std::min(next.value_or(due), due);
  }
  if (!next) return std::nullopt;
  return Time(std::chrono::seconds(std::max(*next, second_of(now) + 1)));
}

/// Samples at this time, and then as often as it is necessary.
void HistoryBook::arm(std::optional<Time> next) {
  if (loop_ == nullptr || is_stopped_ || !next || (armed_for_ && *armed_for_ <= *next)) return;
  if (armed_for_) loop_->cancel(timer_);
  armed_for_ = next;
  timer_ = loop_->at(*next, [this] {
    armed_for_.reset();
    const Time now = EventLoop::Clock::now();
    sample(now);
    arm(next_sample(now));
  });
}

void HistoryBook::stop() {
  is_stopped_ = true;
  if (armed_for_) loop_->cancel(timer_);
  armed_for_.reset();
}

TopicCourse HistoryBook::course_of(TopicId topic, Time now) {
  const auto found = histories_.find(topic.value);
  if (found == histories_.end()) return {};
  Entry& entry = *found->second;
  if (entry.is_still && take(topic, entry, second_of(now) - 1) && !entry.is_still) arm(end_of_second(now));
  return entry.history.course();
}

}  // namespace lightq::broker
