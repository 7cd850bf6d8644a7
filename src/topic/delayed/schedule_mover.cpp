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
constexpr std::int64_t disk_retry_us = 500'000;
constexpr std::int64_t busy_retry_us = 10'000;

}  // namespace

ScheduleMover::~ScheduleMover() {
  stop();
  if (is_open_) parts_.owner.publishing.detach(*this);
}

void ScheduleMover::stop() {
  is_stopped_ = true;
  EventLoop& loop = parts_.owner.context.loop;
  loop.cancel_soon(*this);
  loop.cancel(std::exchange(retry_, 0));
  parts_.owner.context.wall_timers.cancel(std::exchange(timer_, 0));
}

void ScheduleMover::open() {
  if (is_open_ || is_stopped_) return;
  batch_bytes_ = std::min(moved_bytes_wanted, parts_.owner.publishing.batch_bytes_target());
  is_admitted_ = false;
  const auto opened = parts_.owner.publishing.open({parts_.incarnation, 0}, *this,
                                                   {.user = ProducerTable::brokers_own, .has_place = true});
  is_open_ = opened.refusal == ClientError::none;
  if (!is_open_) forgotten("the topic cannot accept another producer");
}

void ScheduleMover::admitted() {
  is_admitted_ = true;
  waiting_by_.clear();
  wake();
}

bool ScheduleMover::resume() {
  is_held_ = false;
  work();
  return !is_held_;
}

bool ScheduleMover::durable_moved() {
  wake();
  return false;
}

void ScheduleMover::end(ClientError code, const std::string& /*why*/) {
  is_open_ = false;
  is_held_ = false;
  if (code == ClientError::shutting_down || code == ClientError::topic_deleted) return stop();
  retry_after(disk_retry_us);
}

void ScheduleMover::retry_after(std::int64_t us) {
  if (retry_ != 0 || is_stopped_) return;
  retry_ = parts_.owner.context.loop.at(EventLoop::Clock::now() + std::chrono::microseconds(us), [this] {
    retry_ = 0;
    is_open_ ? work() : open();
  });
}

void ScheduleMover::on_ready() {
  if (call_first_) call_first_();
  work();
}

void ScheduleMover::work() {
  if (is_stopped_ || !is_admitted_ || !is_open_ || is_held_) return;
  Schedule& schedule = parts_.schedule;
  schedule.durable_moved();
  if (parts_.owner.store.is_durable()) schedule.log_durable(parts_.owner.store.durable_offset());
  const Timestamp now = parts_.owner.context.now();
  schedule.log_begins(parts_.owner.store.first_offset());
  const bool planned = plan(now);
  const Moved moved = move(now);
  // Messages that have left make place in the plan.
  if (moved != Moved::no_space && planned && plan(now) && moved == Moved::all) waiting_by_.clear();
  after_move();
  if (moved == Moved::part) return wake();
  if (moved == Moved::all && is_open_) arm(now);
}

/// Returns false if the plan could not be written; it is tried again later.
bool ScheduleMover::plan(Timestamp now) {
  const auto planned = parts_.schedule.plan(now, parts_.owner.store.next_offset());
  if (!planned) {
    waiting_by_ = "their plan cannot be written: " + planned.error().text();
    retry_after(disk_retry_us);
    return false;
  }
  if (*planned) parts_.start_flush();
  return true;
}

ScheduleMover::Moved ScheduleMover::move(Timestamp now) {
  std::size_t bytes = 0;
  while (bytes < turn_bytes_max) {
    // A batch that was just stored may have made the log drop others.
    parts_.schedule.log_begins(parts_.owner.store.first_offset());
    if (undone_stop <= parts_.schedule.undone() && parts_.owner.store.is_durable()) {
      waiting_by_ = "the messages moved before are not synced to the disk";
      parts_.owner.publishing.want_flush();
      retry_after(disk_retry_us);
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
  const bool is_durable = parts_.store != nullptr;
  const std::uint64_t number = is_durable ? batch_.first_sequence : next_in_memory_;
  const std::uint64_t first = own_sequences_begin + number;
  TopicPublishing& publishing = parts_.owner.publishing;
  const Sequences sequences{{parts_.incarnation, 0}, first, count};
  if (const auto admission = publishing.admit(sequences); admission != Admission::store)
    return store_refused(admission, now);
  const std::uint64_t message_bytes = batch_.builder.message_bytes();
  const std::uint64_t charge = message_bytes + count * Schedule::charge_of(0);
  DelayedRoom(parts_.owner.topic).set_bytes(parts_.schedule.charged_bytes() - charge);
  const auto bytes = batch_.finish(parts_.incarnation, first);
  const auto outcome = publishing.store_own({bytes, count, message_bytes}, sequences);
  if (outcome == PublishOutcome::accepted) {
    note_moved(now);
    return Moved::part;
  }
  parts_.count_bytes();
  if (outcome == PublishOutcome::refused) {
    if (count == 1 && !give_up_first(now)) return Moved::no_space;
    batch_bytes_ = 1;  // one message of them may be small enough
    return Moved::part;
  }
  waiting_by_ = publishing.is_held_by_disk() ? "the disk is full or cannot be written" : "the topic is full";
  is_held_ = outcome == PublishOutcome::held;
  if (is_held_) {
    publishing.hold(*this);
  } else {
    retry_after(disk_retry_us);
  }
  return Moved::no_space;
}

/// Called when the batch is in the topic's log.
void ScheduleMover::note_moved(Timestamp now) {
  next_in_memory_ += batch_.builder.record_count();
  for (const DuePosition& position : batch_.positions)
    parts_.owner.context.latencies.due_lateness.record(now.us - position.due_us);
  parts_.schedule.moved(batch_, parts_.owner.store.next_offset(), now);
  has_moved_ = true;
  waiting_by_.clear();
}

/// Continues after the topic has not admitted a batch.
ScheduleMover::Moved ScheduleMover::store_refused(Admission admission, Timestamp now) {
  switch (admission) {
    case Admission::repeat:
      // On disk, a number means one message for ever, so the topic has these. In memory the numbers are free.
      if (parts_.store != nullptr) {
        note_moved(now);
      } else {
        next_in_memory_ += batch_.builder.record_count();
      }
      return Moved::part;
    case Admission::out_of_sequence:
      batch_bytes_ = 1;  // the topic has a part of it: the messages follow one by one
      return Moved::part;
    case Admission::store:
    case Admission::fenced:
    case Admission::unknown: break;
  }
  parts_.owner.publishing.detach(*this);
  is_open_ = false;
  forgotten("the topic does not know their producer any more");
  return Moved::no_space;
}

/// Reports once that nothing can be moved, and tries again later.
void ScheduleMover::forgotten(const std::string& why) {
  if (waiting_by_ != why)
    parts_.owner.context.sink.error("topic " + parts_.owner.topic.definition().name.text() +
                                    ": its delayed messages wait: " + why);
  waiting_by_ = why;
  retry_after(disk_retry_us);
}

/// Leaves out a message that the topic can never store. The topic counts it as refused. Returns false if that
/// cannot be written now.
bool ScheduleMover::give_up_first(Timestamp now) {
  const auto number = parts_.schedule.give_up_first(now);
  if (!number) {
    waiting_by_ = number.error().text();
    retry_after(disk_retry_us);
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

/// Sleeps until something is due.
void ScheduleMover::arm(Timestamp now) {
  const auto next = parts_.schedule.next_time();
  if (next == armed_for_ && timer_ != 0) return;
  WallTimers& timers = parts_.owner.context.wall_timers;
  timers.cancel(std::exchange(timer_, 0));
  armed_for_ = next;
  if (!next) return;
  // Due, and not moved: its content or its plan cannot be read or written now.
  if (*next <= now) return retry_after(busy_retry_us);
  timer_ = timers.at(*next, [this] {
    timer_ = 0;
    work();
  });
}

}  // namespace lightq::broker
