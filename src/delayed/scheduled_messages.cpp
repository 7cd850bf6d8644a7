/// Stores delayed messages, and finds them by place. Layer: delayed.
#include "delayed/scheduled_messages.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <new>

#include "delayed/due_runs.hpp"

namespace lightq::broker {

namespace {
constexpr DuePosition last_position{std::numeric_limits<std::int64_t>::max(),
                                    std::numeric_limits<std::uint64_t>::max()};
}  // namespace

ScheduledMessages::~ScheduledMessages() {
  if (log_ != nullptr) return;
  for (auto run = waiting_.from_number(0); run; run = waiting_.from_number(run->end()))
    MemoryBodies::drop(run->place, run->count);
}

ScheduledMessages::Stored ScheduledMessages::append(std::span<std::byte> batch, Timestamp now) {
  const BatchView view = BatchView::trusted(batch.data());
  assert(!view.is_compressed() && view.kinds().has(AttributeKinds::dues));
  if (log_ == nullptr) return append_to_memory(view, now);
  Stored stored{log_->append(batch, now), last_position};
  if (stored.result.outcome != log::AppendOutcome::appended) return stored;
  for (DueRuns runs(view, now); runs.next();) {
    WaitingRun run = runs.run();
    run.number = run.place = stored.result.base.value + runs.index();
    waiting_.add(run);
    stored.first = std::min(stored.first, run.position());
  }
  return stored;
}

ScheduledMessages::Stored ScheduledMessages::append_to_memory(const BatchView& batch, Timestamp now) {
  const std::uint64_t base = next_in_memory_;
  Stored stored{{log::AppendOutcome::appended, {base}}, last_position};
  std::optional<std::uint64_t> unindexed;  // stored, and not in the index yet
  WaitingRun run;
  try {
    for (DueRuns runs(batch, now); runs.next();) {
      run = runs.run();
      run.number = next_in_memory_;
      run.place = MemoryBodies::add(run, without_due(batch.kinds()), now);
      runs.bodies().write(MemoryBodies::records_at(run.place), run.count);
      unindexed = run.place;
      waiting_.add(run);
      unindexed.reset();
      stored.first = std::min(stored.first, run.position());
      next_in_memory_ += run.count;
    }
  } catch (...) {
    if (unindexed) MemoryBodies::drop(*unindexed, run.count);
    forget(base, static_cast<std::uint32_t>(next_in_memory_ - base));
    next_in_memory_ = base;
    throw;
  }
  return stored;
}

void ScheduledMessages::load(const WaitingRun& run) {
  waiting_.add(run);
  if (run.place == run.number) return;
  for (std::uint32_t each = 0; each < run.count; ++each)
    relocated_.insert({run.place + each, run.number + each});
}

void ScheduledMessages::set_due(std::uint64_t number, std::uint32_t count, std::int64_t due_us) {
  const std::uint64_t end = number + count;
  for (auto run = waiting_.from_number(number); run && run->number < end;) {
    const auto changed = static_cast<std::uint32_t>(std::min(run->end(), end) - run->number);
    waiting_.set_due(run->number, changed, due_us);
    run = waiting_.from_number(run->number + changed);
  }
}

void ScheduledMessages::forget(std::uint64_t number, std::uint32_t count) {
  const std::uint64_t end = number + count;
  for (auto run = waiting_.from_number(number); run && run->number < end;) {
    run->count = static_cast<std::uint32_t>(std::min(run->end(), end) - run->number);
    waiting_.remove(run->number, run->count);
    if (log_ == nullptr) {
      drop_kept(*run);
    } else if (run->place != run->number) {
      for (std::uint32_t each = 0; each < run->count; ++each) relocated_.erase(run->place + each);
    }
    run = waiting_.from_number(run->end());
  }
}

/// Drops the content of messages in memory that wait no more.
void ScheduledMessages::drop_kept(const WaitingRun& run) {
  if (MemoryBodies::drop(run.place, run.count)) return;
  const MemoryBodies::Kept& kept = *MemoryBodies::at(run.place);
  if (kept.left < kept.count / 2) pack(run.place);
}

/// Copies the messages that are left of an allocation in memory, and frees it. So the memory is at most about
/// twice that of the messages that wait. Does nothing without memory.
void ScheduledMessages::pack(std::uint64_t place) {
  const MemoryBodies::Kept kept = *MemoryBodies::at(place);
  const std::uint64_t end = kept.number + kept.count;
  try {
    for (auto run = waiting_.from_number(kept.number); run && run->number < end;
         run = waiting_.from_number(run->end())) {
      if (run->place != place) continue;  // packed before, when there was no memory for all
      const std::uint64_t packed = MemoryBodies::add(*run, kept.kinds, kept.arrived);
      MemoryBodies::read(*run).write(MemoryBodies::records_at(packed), run->count);
      waiting_.set_place(run->number, run->count, packed);
      MemoryBodies::drop(place, run->count);
    }
  } catch (const std::bad_alloc&) {  // a later call tries again
  }
}

std::optional<WaitingMessage> ScheduledMessages::from_place(std::uint64_t at) {
  const bool from_lowest = at <= in_place_from_;
  auto in_place = waiting_.from_number(std::max(at, in_place_from_));
  while (in_place && in_place->place != in_place->number) {
    if (from_lowest) in_place_from_ = in_place->end();
    in_place = waiting_.from_number(in_place->end());
  }
  const Relocated* const copied = relocated_.at(relocated_.lower_bound(at));
  if (copied != nullptr && (!in_place || copied->place <= in_place->place))
    return waiting_.find(copied->number);
  return in_place ? std::optional(in_place->first()) : std::nullopt;
}

void ScheduledMessages::copied(std::uint64_t number, std::uint64_t place) {
  const auto message = waiting_.find(number);
  if (message->place != number) relocated_.erase(message->place);
  waiting_.set_place(number, 1, place);
  relocated_.insert({place, number});
}

}  // namespace lightq::broker
