/// Saves the cursors of a topic's groups and subscribers. Layer: topic.
#include "topic/runtime/cursor_saves.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace lightq::broker {

namespace {

constexpr std::int64_t cursor_save_interval_us = 1'000'000;
// Ten times the time that one range takes to collect and write.
constexpr std::int64_t us_for_range = 1;

}  // namespace

CursorSaves::CursorSaves(const Parts& parts, const FoundTopic& found)
    : parts_(parts),
      kept_(found.was_closed()),
      saved_(found.stored),
      purged_(found.stored_cursor(purged_cursor_name)),
      found_(found.stored) {
  parts_.topic.groups().restore(found_);
}

std::vector<log::NamedCursor> CursorSaves::current(std::size_t ranges_max) const {
  auto cursors = parts_.endpoints.subscriber_cursors();
  auto of_groups = parts_.topic.groups().cursors(ranges_max);
  cursors.insert(cursors.end(), std::make_move_iterator(of_groups.begin()),
                 std::make_move_iterator(of_groups.end()));
  if (purged_) cursors.push_back({std::string(purged_cursor_name), *purged_});
  auto lives = parts_.lives.cursors();
  cursors.insert(cursors.end(), std::make_move_iterator(lives.begin()), std::make_move_iterator(lives.end()));
  std::ranges::sort(cursors, {}, &log::NamedCursor::name);
  return cursors;
}

/// Saves the cursors at most once a second, or immediately if a command or consumer waits for it. After a
/// save of many ranges it waits longer, so that saving takes a small part of this thread's time.
void CursorSaves::save(Timestamp now) {
  if (!parts_.store.is_durable() || running_) return;
  const bool awaited = is_awaited();
  const bool saved_lately = saved_at_ <= now && now.us - saved_at_.us < cursor_save_interval_us;
  if (!awaited && saved_lately) return;
  if (saved_at_ <= now && now.us - saved_at_.us < us_for_range * saved_ranges_)
    return parts_.activity.want_ticks();
  auto cursors = current(limits::acknowledged_ranges_total);
  saved_at_ = now;
  if (cursors == saved_ && !failed_ && !awaited) return;
  saved_ = std::move(cursors);
  saved_ranges_ = 0;
  for (const log::NamedCursor& cursor : saved_)
    saved_ranges_ += static_cast<std::int64_t>(cursor.acknowledged.size());
  running_ = true;
  parts_.topic.groups().save_begun();
  waiters_.save_begun();
  parts_.store.save_consumers(saved_);
}

void CursorSaves::saved(const Result<void>& result) {
  running_ = false;
  failed_ = !result.ok();
  kept_ = result.ok();
  parts_.topic.groups().save_ended(result.ok());
  parts_.consumers.saved(result);
  waiters_.save_ended(result);
  if (!parts_.activity.is_stopping())
    parts_.activity.want_dispatch();  // calls those that waited for the save
  if (failed_) parts_.reports.cursors_not_saved(result.error());
}

Result<void> CursorSaves::save_for_stop() {
  auto cursors = current(std::numeric_limits<std::size_t>::max());
  Result<void> kept;
  if (parts_.store.is_durable() && (!kept_ || cursors != saved_))
    kept = parts_.store.save_consumers_now(cursors);
  if (!kept) parts_.reports.cursors_not_saved(kept.error());
  return kept;
}

void CursorSaves::answer_when_saved(std::uint64_t answer, const Answered& answered) {
  parts_.activity.want_dispatch();
  if (!parts_.store.is_durable()) return answered(answer);
  if (parts_.activity.is_stopping())
    return answered(Error{ErrorCode::shutting_down, "the broker is stopping"});
  waiters_.add([answer, answered](const Result<void>& saved) {
    if (!saved) return answered(saved.error());
    answered(answer);
  });
}

}  // namespace lightq::broker
