/// The steps of a transfer of dead messages. Layer: topic.
#include "topic/dead/letter_transfer.hpp"

#include <algorithm>
#include <vector>

#include "topic/dead/letter_office.hpp"

namespace lightq::broker {

namespace {
// How long a transfer waits at a time until the messages survive a power cut in their own topic.
constexpr auto durable_interval = std::chrono::milliseconds(100);
constexpr int durable_waits_max = 50;
// How often a transfer that waits for an answer looks whether the group still wants it.
constexpr auto check_interval = std::chrono::seconds(1);
}  // namespace

LetterTransfer::~LetterTransfer() {
  parts_.loop.cancel(timer_);
  close();
}

void LetterTransfer::work() {
  if (step_ != Step::idle) return;
  const std::string target = source_->target();
  if (target.empty() || !source_->has_any()) {
    close();
    step_ = Step::done;
    return;
  }
  if (source_->begin(under_way_max) == 0) {
    if (++durable_waits_ > durable_waits_max)
      return rest({ErrorCode::io_error, "they do not become durable in their own topic"});
    return work_at(EventLoop::Clock::now() + durable_interval);
  }
  durable_waits_ = 0;
  const std::uint64_t incarnation = source_->incarnation();
  if (target_ && !is_present()) close();
  const std::uint64_t end = source_->under_way().back().number + 1;
  if (saved_.incarnation != incarnation || saved_.end < end) {
    saving_ = {incarnation, end};
    step_ = Step::saving;
    return source_->save(parts_.saved);
  }
  target_ ? send() : open();
}

void LetterTransfer::saved(const Result<void>& result) {
  if (step_ != Step::saving) return;
  if (!result) return rest(result.error());
  saved_ = saving_;
  step_ = Step::idle;
  work();
}

void LetterTransfer::rested() {
  if (step_ == Step::opening || step_ == Step::sending) {
    // A full target may take its time. Until then the group may have been purged, or got another target.
    if (is_present()) return await_answer();
    close();
  } else if (step_ != Step::resting) {
    return;
  }
  step_ = Step::idle;
  work();
}

/// Returns true if the channel is for the present target and incarnation of the group.
bool LetterTransfer::is_present() const {
  return source_->incarnation() == incarnation_ && source_->target() == target_name_;
}

void LetterTransfer::await_answer() {
  parts_.loop.cancel(timer_);
  timer_ = parts_.loop.at(EventLoop::Clock::now() + check_interval, parts_.rested);
}

void LetterTransfer::open() {
  target_name_ = source_->target();
  incarnation_ = source_->incarnation();
  ++channel_.attempt;
  target_ = parts_.post.find(target_name_);
  if (!target_) return rest({ErrorCode::topic_not_found, "there is no such topic"});
  const auto task = [channel = channel_, target = *target_, id = incarnation_](LetterOffice& there) {
    there.open_inlet(channel, target, id);
  };
  if (!parts_.post.send(*target_, task)) {
    target_.reset();
    return rest({ErrorCode::busy, "its thread has too much work"});
  }
  step_ = Step::opening;
  await_answer();
}

/// Reads messages under way, and sends as many of the first ones as one round may have.
void LetterTransfer::send() {
  std::vector<NumberedLetter> letters;
  std::size_t bytes = 0;
  for (const LetterSource::Message& message : source_->under_way()) {
    if (bytes >= sent_bytes_max) break;
    LetterSource::Read read = source_->read(message);
    if (read.outcome == LetterSource::Read::Outcome::letter) {
      bytes += read.letter->message_bytes();
      letters.push_back({message.number, std::move(*read.letter)});
      continue;
    }
    if (!letters.empty()) break;  // the next round begins with it
    switch (read.outcome) {
      case LetterSource::Read::Outcome::lost: source_->done(incarnation_, message.number); continue;
      case LetterSource::Read::Outcome::too_large:
        return give_up(message.number, "with the headers of its death it exceeds the limits of a message");
      default: return rest({ErrorCode::io_error, "the next message cannot be read now"});
    }
  }
  if (letters.empty()) return work_at(EventLoop::Clock::now());
  const auto task = [channel = channel_, letters = std::move(letters)](LetterOffice& there) mutable {
    there.take(channel, std::move(letters));
  };
  if (!parts_.post.send(*target_, task)) return rest({ErrorCode::busy, "its thread has too much work"});
  step_ = Step::sending;
  await_answer();
}

void LetterTransfer::settled(std::uint64_t expected) {
  if (step_ != Step::opening && step_ != Step::sending) return;
  const auto under_way = source_->under_way();
  // The group was restored from an older state, and the target has letters of the time since. Their numbers
  // must not be given to other messages.
  const bool is_older = source_->incarnation() == incarnation_ &&
                        (under_way.empty() || under_way.back().number + 1 < expected) &&
                        step_ == Step::opening;
  finish_below(expected);
  if (is_older) {
    source_->renew();
    close();
  }
  proceed();
}

void LetterTransfer::refused(std::uint64_t number, const Error& why) {
  if (step_ != Step::sending) return;
  finish_below(number);
  give_up(number, why.message);
}

/// Parks a message that the target does not have and never takes. A new incarnation begins, so that its
/// number is not used again.
void LetterTransfer::give_up(std::uint64_t number, const std::string& why) {
  parts_.sink.error(source_->name() + ": a dead message is parked, because topic " + target_name_ +
                    " cannot receive it: " + why);
  const bool is_present = source_->incarnation() == incarnation_;
  source_->give_up(incarnation_, number);
  if (is_present) source_->renew();
  close();
  proceed();
}

void LetterTransfer::ended(const Error& why) {
  if (step_ != Step::opening && step_ != Step::sending) return;
  close();
  rest(why);
}

void LetterTransfer::finish_below(std::uint64_t expected) {
  for (const LetterSource::Message& message : source_->under_way()) {
    if (expected <= message.number) break;
    source_->done(incarnation_, message.number);
  }
}

/// Continues after a step that has worked.
void LetterTransfer::proceed() {
  rest_ = rest_min;
  if (std::exchange(told_, false))
    parts_.sink.info(source_->name() + ": dead messages are moved to topic " + target_name_ + " again");
  step_ = Step::idle;
  work();
}

void LetterTransfer::rest(const Error& why) {
  if (!std::exchange(told_, true)) {
    parts_.sink.error(source_->name() + ": dead messages wait, because they cannot be moved to topic " +
                      target_name_ + " now: " + why.text());
  }
  work_at(EventLoop::Clock::now() + rest_);
  rest_ = std::min(2 * rest_, rest_max);
}

/// Continues in a later turn, not before `when`.
void LetterTransfer::work_at(EventLoop::Clock::time_point when) {
  step_ = Step::resting;
  parts_.loop.cancel(timer_);
  timer_ = parts_.loop.at(when, parts_.rested);
}

void LetterTransfer::close() {
  if (!target_) return;
  parts_.post.answer(*target_, [channel = channel_](LetterOffice& there) { there.close_inlet(channel); });
  target_.reset();
}

}  // namespace lightq::broker
