/// Saves the cursors of a topic's groups and subscribers. Layer: topic.
#include <algorithm>
#include <iterator>
#include <utility>

#include "topic/topic_runtime.hpp"

namespace lightq::broker {

namespace {

constexpr std::int64_t cursor_save_interval_us = 1'000'000;
// Ten times the time that one range takes to collect and write.
constexpr std::int64_t us_for_range = 1;

}  // namespace

std::vector<log::NamedCursor> TopicRuntime::cursors(std::size_t ranges_max) const {
  auto cursors = endpoints_.subscriber_cursors();
  auto of_groups = topic_.groups().cursors(ranges_max);
  cursors.insert(cursors.end(), std::make_move_iterator(of_groups.begin()),
                 std::make_move_iterator(of_groups.end()));
  if (purged_) cursors.push_back({std::string(purged_cursor_name), *purged_});
  auto lives = lives_.cursors();
  cursors.insert(cursors.end(), std::make_move_iterator(lives.begin()), std::make_move_iterator(lives.end()));
  std::ranges::sort(cursors, {}, &log::NamedCursor::name);
  return cursors;
}

/// Saves the cursors at most once a second, or immediately if a command or consumer waits for it. After a
/// save of many ranges it waits longer, so that saving takes a small part of this thread's time.
void TopicRuntime::save_cursors(Timestamp now) {
  if (!store().is_durable() || cursor_job_out_) return;
  const bool awaited = cursors_awaited();
  const bool saved_lately = cursors_saved_ <= now && now.us - cursors_saved_.us < cursor_save_interval_us;
  if (!awaited && saved_lately) return;
  if (cursors_saved_ <= now && now.us - cursors_saved_.us < us_for_range * saved_ranges_) return want_ticks();
  auto current = cursors(limits::acknowledged_ranges_total);
  cursors_saved_ = now;
  if (current == saved_cursors_ && !cursors_failed_ && !awaited) return;
  saved_cursors_ = std::move(current);
  saved_ranges_ = 0;
  for (const log::NamedCursor& cursor : saved_cursors_)
    saved_ranges_ += static_cast<std::int64_t>(cursor.acknowledged.size());
  cursor_job_out_ = true;
  topic_.groups().save_begun();
  cursor_waiters_.save_begun();
  store().save_consumers(saved_cursors_);
}

void TopicRuntime::cursors_saved(const Result<void>& result) {
  cursor_job_out_ = false;
  cursors_failed_ = !result.ok();
  cursors_kept_ = result.ok();
  topic_.groups().save_ended(result.ok());
  consumers_.saved(result);
  cursor_waiters_.save_ended(result);
  if (!stopping_) want_dispatch();  // calls those that waited for the save
  if (cursors_failed_)
    context_.sink.error("topic " + definition().name.text() +
                        ": cannot save its cursors: " + result.error().text());
}

}  // namespace lightq::broker
