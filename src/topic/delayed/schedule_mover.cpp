/// Plans, appends and finishes the messages of a schedule that are due. Layer: topic.
#include "topic/delayed/schedule_mover.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <lightq/base/limits.hpp>

#include "admission/turn_work.hpp"

namespace lightq::broker {

namespace {

constexpr std::size_t moved_bytes_wanted = 256 * limits::KiB;
constexpr std::size_t turn_bytes_max = 1 * limits::MiB;
// With more messages than this in the topic's log that are not durable there, a sync is requested.
constexpr std::size_t undone_max = 65'536;
// With more than this nothing is moved until the log is durable further on.
constexpr std::size_t undone_stop = 16 * undone_max;
constexpr std::chrono::milliseconds pause{500};
constexpr std::chrono::milliseconds busy_pause{10};
// After messages were moved, those that are due within this time follow together. A dense stream would
// otherwise take a turn of the loop, a batch in the log and a delivery for each of them.
constexpr std::int64_t move_interval_us = 1'000;

}  // namespace

ScheduleMover::ScheduleMover(const ScheduleParts& parts)
    : parts_(parts),
      producer_(parts.owner.context.loop, parts.owner.publishing,
                {.id = parts.incarnation, .has_place = true, .pause_min = pause, .pause_max = pause}, *this) {
}

ScheduleMover::~ScheduleMover() {
  stop();
}

void ScheduleMover::stop() {
  producer_.stop();
  parts_.owner.context.loop.cancel_soon(*this);
  ended();
}

void ScheduleMover::ended() {
  parts_.owner.context.wall_timers.cancel(std::exchange(timer_, 0));
}

/// Reports once that nothing can be moved.
void ScheduleMover::cannot_open(const std::string& why) {
  if (waiting_by() == why) return;
  parts_.owner.context.sink.error("topic " + parts_.owner.topic.definition().name.text() +
                                  ": its delayed messages wait: " + why);
}

void ScheduleMover::on_ready() {
  if (call_first_) call_first_();
  work();
}

void ScheduleMover::work() {
  if (!producer_.is_ready()) return;
  Schedule& schedule = parts_.schedule;
  schedule.durable_moved();
  if (parts_.owner.store.is_durable()) schedule.log_durable(parts_.owner.store.durable_offset());
  const Timestamp now = parts_.owner.context.now();
  schedule.log_begins(parts_.owner.store.first_offset());
  const bool planned = plan(now);
  const Moved moved = move(now);
  // Messages that have left make place in the plan.
  if (moved != Moved::no_space && planned && plan(now) && moved == Moved::all) producer_.set_waiting_by({});
  after_move();
  if (moved == Moved::part) return wake();
  if (moved == Moved::all) arm(now);
}

/// Returns false if the plan could not be written; it is tried again later.
bool ScheduleMover::plan(Timestamp now) {
  const auto planned = parts_.schedule.plan(now, parts_.owner.store.next_offset());
  if (!planned) {
    wait("their plan cannot be written: " + planned.error().text());
    return false;
  }
  if (*planned) {
    parts_.start_flush();
    wake();  // more may be due soon than one call plans
  }
  return true;
}

ScheduleMover::Moved ScheduleMover::move(Timestamp now) {
  std::size_t bytes = 0;
  while (bytes < turn_bytes_max) {
    // A batch that was just stored may have made the log drop others.
    parts_.schedule.log_begins(parts_.owner.store.first_offset());
    if (undone_stop <= parts_.schedule.undone() && parts_.owner.store.is_durable()) {
      parts_.owner.publishing.want_flush();
      wait("the messages moved before are not synced to the disk");
      return Moved::no_space;
    }
    if (!parts_.schedule.take_due(batch_, now, batch_bytes_)) return Moved::all;
    bytes += batch_.builder.size_bytes();
    const Moved stored = store_batch(now);
    if (stored != Moved::part) return stored;
  }
  return Moved::part;
}

/// Appends a batch to the topic's log. The messages give up their share of the topic's capacity before they
/// take it again.
ScheduleMover::Moved ScheduleMover::store_batch(Timestamp now) {
  const std::uint32_t count = batch_.builder.record_count();
  const std::uint64_t number = parts_.store != nullptr ? batch_.first_sequence : next_in_memory_;
  const std::uint64_t message_bytes = batch_.builder.message_bytes();
  const std::uint64_t charge = message_bytes + count * Schedule::charge_of(0);
  const auto bytes = batch_.finish(parts_.incarnation, OwnProducer::sequence_of(number));
  DelayedRoom(parts_.owner.topic).set_bytes(parts_.schedule.charged_bytes() - charge);
  const auto result = producer_.store({bytes, count, message_bytes}, number);
  if (result == OwnProducer::Stored::yes) {
    note_moved(now);
    return Moved::part;
  }
  parts_.count_bytes();
  return stored(result, now);
}

/// Continues after a batch was not stored.
ScheduleMover::Moved ScheduleMover::stored(OwnProducer::Stored stored, Timestamp now) {
  switch (stored) {
    case OwnProducer::Stored::repeat:
      // On disk, a number means one message for ever, so the topic has these. In memory the numbers are free.
      if (parts_.store != nullptr) {
        note_moved(now);
      } else {
        next_in_memory_ += batch_.builder.record_count();
      }
      return Moved::part;
    case OwnProducer::Stored::out_of_sequence:
      batch_bytes_ = 1;  // the topic has a part of it: the messages follow one by one
      return Moved::part;
    case OwnProducer::Stored::too_large:
      if (batch_.builder.record_count() == 1 && !give_up_first(now)) return Moved::no_space;
      batch_bytes_ = 1;  // one message of them may be small enough
      return Moved::part;
    case OwnProducer::Stored::yes:
    case OwnProducer::Stored::no_space:
    case OwnProducer::Stored::forgotten: break;
  }
  return Moved::no_space;
}

/// Called when the batch is in the topic's log.
void ScheduleMover::note_moved(Timestamp now) {
  next_in_memory_ += batch_.builder.record_count();
  for (const WaitingRun& run : batch_.runs)
    parts_.owner.context.latencies.due_lateness.record(now.us - run.due_us, run.count);
  parts_.schedule.moved(batch_, parts_.owner.store.next_offset(), now);
  has_moved_ = true;
  moved_at_ = now;
  producer_.set_waiting_by({});
}

/// Tries again after a pause.
void ScheduleMover::wait(const std::string& why) {
  producer_.set_waiting_by(why);
  producer_.try_later();
}

/// Leaves out a message that the topic can never store. The topic counts it as refused. Returns false if that
/// cannot be written now.
bool ScheduleMover::give_up_first(Timestamp now) {
  const auto number = parts_.schedule.give_up_first(now);
  if (!number) {
    wait(number.error().text());
    return false;
  }
  parts_.owner.context.sink.error("topic " + parts_.owner.topic.definition().name.text() +
                                  ": the delayed message with the number " + std::to_string(*number) +
                                  " was not delivered: it is larger than the topic can store");
  return true;
}

void ScheduleMover::after_move() {
  if (!std::exchange(has_moved_, false)) return;
  batch_bytes_ = std::min(moved_bytes_wanted, parts_.owner.publishing.batch_bytes_target());
  parts_.count_bytes();
  if (undone_max < parts_.schedule.undone()) parts_.owner.publishing.want_flush();
  parts_.owner.activity.want_dispatch();
  parts_.owner.activity.want_ticks();
}

/// Sleeps until something is due, and for move_interval_us at least if messages were just moved.
void ScheduleMover::arm(Timestamp now) {
  auto next = parts_.schedule.next_time();
  // Only if the clock was not set back since.
  if (next && now < *next && moved_at_ <= now) next = std::max(*next, {moved_at_.us + move_interval_us});
  if (next == armed_for_ && timer_ != 0) return;
  WallTimers& timers = parts_.owner.context.wall_timers;
  timers.cancel(std::exchange(timer_, 0));
  armed_for_ = next;
  if (!next) return;
  // Due, and not moved: its content or its plan cannot be read or written now.
  if (*next <= now) return producer_.try_after(busy_pause);
  timer_ = timers.at(*next, [this] {
    timer_ = 0;
    work();
  });
}

}  // namespace lightq::broker
