/// Saves the cursors of a topic's groups and subscribers. Layer: topic.
#include "topic/runtime/cursor_saves.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#include "admission/memory_reserve.hpp"

namespace lightq::broker {

namespace {

using Clock = EventLoop::Clock;

constexpr auto cursor_save_interval = std::chrono::seconds(1);
// After a save it waits so many times as long as collecting and encoding took, so that saves take a small
// part of the time of this thread and of the one that encodes; but no longer than the most.
constexpr int rest_factor = 10;
constexpr auto rest_max = std::chrono::seconds(10);
// The most ranges in flight that are collected in one turn: less than a millisecond's work.
constexpr std::size_t collected_in_turn = 4096;

/// Reads the clocks to store times; see ClockReading.
ClockReading clocks_to_store(const TopicActivity& activity) {
  ClockReading clocks;
  clocks.steady = Clock::now();
  clocks.wall = activity.now();
  return clocks;
}

/// Reads the clocks to restore times; see ClockReading.
ClockReading clocks_to_restore(const TopicActivity& activity) {
  ClockReading clocks;
  clocks.wall = activity.now();
  clocks.steady = Clock::now();
  return clocks;
}

/// Returns the cursors that belong to no group.
std::vector<log::NamedCursor> without_groups(std::vector<log::NamedCursor> cursors) {
  std::erase_if(cursors,
                [](const log::NamedCursor& cursor) { return GroupCursors::is_of_group(cursor.name); });
  return cursors;
}

}  // namespace

CursorSaves::CursorSaves(const Parts& parts, const FoundTopic& found)
    : parts_(parts),
      kept_(found.was_closed()),
      groups_(parts.topic.groups()),
      others_(without_groups(found.stored)),
      purged_(found.stored_cursor(purged_cursor_name)),
      found_(others_) {
  groups_.restore(found.stored, parts_.topic.log().next_offset(), clocks_to_restore(parts_.activity));
}

/// Returns the cursors that belong to no group, by name.
std::vector<log::NamedCursor> CursorSaves::present_others() const {
  auto cursors = parts_.endpoints.subscriber_cursors();
  if (purged_) cursors.push_back({std::string(purged_cursor_name), *purged_});
  if (const auto from = parts_.topic.expiry().mark())
    cursors.push_back({std::string(ttl_cursor_name), *from});
  auto lives = parts_.lives.cursors();
  cursors.insert(cursors.end(), std::make_move_iterator(lives.begin()), std::make_move_iterator(lives.end()));
  auto letters = parts_.book.cursors();
  cursors.insert(cursors.end(), std::make_move_iterator(letters.begin()),
                 std::make_move_iterator(letters.end()));
  std::ranges::sort(cursors, {}, &log::NamedCursor::name);
  return cursors;
}

/// Returns true if it is too early for another save. One that is awaited only leaves as much time as
/// collecting and encoding took in the last save, so that this topic does not keep the encoding thread for
/// itself.
bool CursorSaves::is_too_early(SteadyTime now, bool awaited) {
  next_timer_ = never;
  if (!awaited && begun_at_ && now < *begun_at_ + cursor_save_interval) return true;
  if (cost_ == Clock::duration(0)) return false;
  const SteadyTime rested =
      ended_at_ + std::min<Clock::duration>((awaited ? 1 : rest_factor) * cost_, rest_max);
  if (rested <= Clock::now()) return false;
  if (awaited) next_timer_ = rested;
  return true;
}

void CursorSaves::save() {
  if (!parts_.store.is_durable() || step_ == Step::writing) return;
  if (step_ == Step::collecting) return collect();
  const bool awaited = is_awaited();
  const SteadyTime now = parts_.activity.steady_now();
  later_ = is_too_early(now, awaited);
  if (later_) return parts_.activity.want_ticks();
  auto others = present_others();
  begun_at_ = now;
  if (!awaited && !failed_ && others == others_ && !groups_.changed()) return;
  others_ = std::move(others);
  step_ = Step::collecting;
  kept_ = false;
  collecting_ = {};
  groups_.begin();
  parts_.topic.groups().births().save_begun();
  waiters_.save_begun();
  collect();
}

/// Takes the next piece of the snapshot. After the last one the store goes on, on other threads.
void CursorSaves::collect() {
  const ClockReading clocks = clocks_to_store(parts_.activity);
  const bool complete = groups_.collect(collected_in_turn, clocks);
  collecting_ += Clock::now() - clocks.steady;
  if (!complete) return parts_.activity.want_dispatch();
  step_ = Step::writing;
  const auto snapshot = std::make_shared<CursorsSnapshot>(groups_.take());
  snapshot->plain.insert(snapshot->plain.end(), others_.begin(), others_.end());
  // The snapshot is destroyed on the encoding thread, too.
  parts_.store.save_consumers([snapshot] { return std::exchange(*snapshot, {}).finished(); });
}

void CursorSaves::saved(const Result<void>& result) {
  step_ = Step::idle;
  failed_ = !result.ok();
  kept_ = result.ok();
  cost_ = collecting_ + std::chrono::microseconds(parts_.store.consumers_encoding_us());
  ended_at_ = Clock::now();
  parts_.topic.groups().births().save_ended(result.ok());
  parts_.consumers.saved(result);
  waiters_.save_ended(result);
  if (!parts_.activity.is_stopping())
    parts_.activity.want_dispatch();  // calls those that waited for the save
  if (failed_) parts_.reports.cursors_not_saved(result.error());
}

/// Saves the cursors, or fails if there is no memory to encode them.
Result<void> CursorSaves::save_now(const TopicStore::MakeCursors& cursors) {
  const FallibleAllocations fallible;
  try {
    return parts_.store.save_consumers_now(cursors);
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::limit_reached, "there is not enough memory to save the consumer groups"};
  }
}

Result<void> CursorSaves::save_for_stop() {
  if (!parts_.store.is_durable()) return {};
  auto others = present_others();
  if (kept_ && others == others_ && !groups_.changed()) return {};
  step_ = Step::idle;  // a save that was collecting has not ended
  groups_.begin();
  groups_.collect(std::numeric_limits<std::size_t>::max(), clocks_to_store(parts_.activity));
  CursorsSnapshot snapshot = groups_.take();
  others_ = std::move(others);
  snapshot.plain.insert(snapshot.plain.end(), others_.begin(), others_.end());
  const auto saved = save_now([&] { return snapshot.finished(); });
  kept_ = saved.ok();
  if (!saved) parts_.reports.cursors_not_saved(saved.error());
  return saved;
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
