/// Opens a topic's schedule when it is needed, and passes calls on to it. Layer: topic.
#include "topic/delayed/hosted_schedule.hpp"

#include <algorithm>
#include <utility>

#include <lightq/base/due.hpp>

#include "delayed/delayed_query.hpp"
#include "log/elapsed.hpp"

namespace lightq::broker {

namespace {
// An attempt reads the whole schedule.
constexpr std::int64_t retry_us_min = 1'000'000;
constexpr std::int64_t retry_us_max = 60'000'000;
}  // namespace

HostedSchedule::HostedSchedule(const ScheduleOwner& owner, const DurableProducers& known, OpenSchedule open)
    : owner_(owner), known_(known), open_(std::move(open)) {}

std::string HostedSchedule::where() const {
  return "topic " + owner_.topic.definition().name.text() + ": ";
}

void HostedSchedule::start(std::unique_ptr<FoundSchedule> found) {
  const auto begun = begin(std::move(found));
  if (!begun) note_fault(begun.error(), owner_.activity.now());
}

/// Keeps the error for commands and statistics, and requests the ticks that try again.
void HostedSchedule::note_fault(const Error& fault, Timestamp now) {
  if (!fault_ || fault_->message != fault.message)
    owner_.context.sink.error(where() +
                              "its delayed messages wait, because they cannot be read: " + fault.text());
  fault_ = fault;
  failed_ = now;
  retry_us_ = std::clamp(2 * retry_us_, retry_us_min, retry_us_max);
  owner_.activity.want_ticks();
}

/// Opens the schedule again that could not be read.
Result<void> HostedSchedule::begin_again(Timestamp now) {
  if (!log::has_passed(failed_, retry_us_, now)) return *fault_;
  auto found = open_(now);
  auto begun = found ? begin(std::move(*found)) : Result<void>(found.error());
  if (!begun) {
    note_fault(begun.error(), now);
    return begun;
  }
  fault_.reset();
  retry_us_ = 0;
  owner_.context.sink.info(where() + "its delayed messages can be read again");
  return {};
}

/// Begins to work with a schedule; null: one in memory.
Result<void> HostedSchedule::begin(std::unique_ptr<FoundSchedule> found) {
  auto opened = ScheduleWork::open(owner_, std::move(found), known_);
  if (!opened) return opened.error();
  work_ = std::move(*opened);
  return {};
}

Result<ScheduleWork*> HostedSchedule::opened() {
  if (work_ != nullptr) return work_.get();
  if (!open_) return Error{ErrorCode::not_supported, "a direct topic keeps no delayed messages"};
  if (owner_.activity.is_stopping()) return Error{ErrorCode::shutting_down, "the broker is stopping"};
  const Timestamp now = owner_.activity.now();
  if (fault_) {
    if (const auto begun = begin_again(now); !begun) return begun.error();
    return work_.get();
  }
  auto found = open_(now);
  if (!found) return found.error();
  if (auto begun = begin(std::move(*found)); !begun) return begun.error();
  return work_.get();
}

Result<ProduceTarget*> HostedSchedule::target() {
  const auto work = opened();
  if (!work) return work.error();
  return static_cast<ProduceTarget*>(&(*work)->publishing());
}

Result<DelayedList> HostedSchedule::list(const DelayedFilter& filter, DuePosition from, std::size_t most) {
  if (work_ == nullptr && open_ && !fault_) return DelayedList{};
  const auto work = opened();
  if (!work) return work.error();
  return DelayedQuery((*work)->schedule(), filter).list(from, most);
}

Result<DelayedPiece> HostedSchedule::act(DelayedAction action, const DelayedFilter& filter, DuePosition from,
                                         Timestamp due) {
  const Timestamp now = owner_.activity.now();
  if (due.us < 0 || is_due_too_far(due.us, now))  // also for a count of messages to reschedule
    return Error{ErrorCode::invalid_argument, "a message is due at most ten years (3,653 days) ahead"};
  if (work_ == nullptr && open_ && !fault_) {
    Schedule none;
    return DelayedQuery(none, filter).act(DelayedAction::count, from, due, now);
  }
  const auto work = opened();
  if (!work) return work.error();
  auto piece = DelayedQuery((*work)->schedule(), filter).act(action, from, due, now);
  if (action != DelayedAction::count) (*work)->changed();
  return piece;
}

void HostedSchedule::answer_when_durable(std::uint64_t messages, const Answered& answered) {
  if (work_ == nullptr) return answered(messages);
  work_->answer_when_durable(messages, answered);
}

DelayedStats HostedSchedule::stats() const {
  if (work_ != nullptr) return work_->stats();
  if (!fault_) return {};
  return {.bytes = owner_.topic.delayed().bytes(), .waiting_by = "they cannot be read: " + fault_->text()};
}

std::size_t HostedSchedule::connected() const {
  return work_ == nullptr ? 0 : work_->connected();
}

bool HostedSchedule::tick(Timestamp now) {
  if (fault_) static_cast<void>(begin_again(now));
  return work_ != nullptr ? work_->tick(now) : fault_.has_value();
}

void HostedSchedule::begin_stop(ClientError why, const char* sentence) {
  if (work_ != nullptr) work_->begin_stop(why, sentence);
}

void HostedSchedule::flush_for_stop() {
  if (work_ != nullptr) work_->flush_for_stop();
}

bool HostedSchedule::is_idle_on_disk() const {
  return work_ == nullptr || work_->is_idle_on_disk();
}

void HostedSchedule::when_idle_on_disk(std::function<void()> call) {
  work_->when_idle_on_disk(std::move(call));
}

std::unique_ptr<TopicSchedule> make_topic_schedule(const ScheduleOwner& owner, const DurableProducers& known,
                                                   OpenSchedule open) {
  return std::make_unique<HostedSchedule>(owner, known, std::move(open));
}

}  // namespace lightq::broker
