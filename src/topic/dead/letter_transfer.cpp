/// The steps of a transfer of dead messages. Layer: topic.
#include "topic/dead/letter_transfer.hpp"

#include <algorithm>
#include <vector>

#include "admission/turn_work.hpp"
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
  parts_.turns.forget(*this);
  close();
}

void LetterTransfer::work() {
  if (step_ != Step::idle) return;
  if (source_->bound_to() != TopicId{} && !parts_.post.name_of(source_->bound_to())) {
    close();
    source_->renew();  // the letters are gone with that topic
  }
  if (source_->has_any() && source_->bound_to() == TopicId{} && source_->target().name.empty())
    source_->renew();  // parks them
  if (!source_->has_any()) {
    close();
    source_->set_trouble({});
    step_ = Step::done;
    return;
  }
  const LetterSource::Target wanted = source_->target();
  wanted_ = wanted.topic;
  asks_ = source_->bound_to() != TopicId{} && source_->bound_to() != wanted.topic;
  if (asks_) {
    close();
    return open();
  }
  target_name_ = wanted.name;
  if (!parts_.post.name_of(wanted.topic)) return rest(why_missing(wanted));
  if (source_->next_number() != 0 && source_->incarnation() != known_) {
    close();
    return open();
  }
  if (source_->begin(under_way_max) == 0) {
    if (++durable_waits_ > durable_waits_max)
      return rest({ErrorCode::io_error, "they do not become durable in their own topic"});
    return work_at(EventLoop::Clock::now() + durable_interval);
  }
  durable_waits_ = 0;
  known_ = source_->incarnation();  // perhaps a new one, of which no target knows a number
  if (target_ && !is_present()) close();
  save();
}

/// Returns the reason why the dead-letter topic does not exist.
Error LetterTransfer::why_missing(const LetterSource::Target& wanted) const {
  const char* const why =
      parts_.post.find(wanted.name)
          ? "the topic was deleted, and another one has its name; set dead_letter_topic again"
          : "the topic was deleted; set dead_letter_topic again when there is one";
  return {ErrorCode::topic_not_found, why};
}

/// Saves the numbers of the messages under way unless they are saved. Then opens the channel, or sends.
void LetterTransfer::save() {
  const std::uint64_t incarnation = source_->incarnation();
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

void LetterTransfer::woken() {
  if (source_->target().topic == wanted_ || step_ == Step::saving || step_ == Step::done) return;
  rest_ = rest_min;
  rested();
}

/// Returns true if the channel is for the present incarnation, and still has its purpose.
bool LetterTransfer::is_present() const {
  return source_->incarnation() == incarnation_ &&
         (asks_ ? source_->bound_to() : source_->target().topic) == target_;
}

void LetterTransfer::await_answer() {
  parts_.loop.cancel(timer_);
  timer_ = parts_.loop.at(EventLoop::Clock::now() + check_interval, parts_.rested);
}

/// Opens a channel to the topic that may have letters of the incarnation.
void LetterTransfer::open() {
  const TopicId target = asks_ ? source_->bound_to() : wanted_;
  target_name_ = parts_.post.name_of(target).value_or(std::string());
  incarnation_ = source_->incarnation();
  ++channel_.attempt;
  const auto task = [channel = channel_, target, id = incarnation_](LetterOffice& there) {
    there.open_producer(channel, target, id);
  };
  if (!parts_.post.send(target, task)) return rest({ErrorCode::busy, "its thread has too much work"});
  target_ = target;
  step_ = Step::opening;
  await_answer();
}

/// Reads messages under way, as many of the first ones as one round may have. Counts the work.
LetterTransfer::Round LetterTransfer::read_round() {
  using Outcome = LetterSource::Read::Outcome;
  const std::uint64_t work_from = TurnWork::bytes();
  TurnWork::add(TurnWork::task_run);
  Round round;
  std::size_t bytes = 0;
  for (const LetterSource::Message& message : source_->under_way()) {
    if (sent_bytes_max <= bytes || TurnQueue::turn_bytes <= TurnWork::bytes() - work_from) break;
    LetterSource::Read read = source_->read(message);
    if (read.outcome == Outcome::letter) {
      const std::size_t of_letter = read.letter->message_bytes();
      TurnWork::add(of_letter);  // copying it
      bytes += of_letter;
      round.letters.push_back({message.number, std::move(*read.letter)});
      round.bytes = bytes;
      continue;
    }
    if (!round.letters.empty()) break;  // the next round begins with it
    if (read.outcome == Outcome::lost) {
      source_->lose(incarnation_, message.number);
      continue;
    }
    round.obstacle = {message.number, read.outcome};
    break;
  }
  parts_.turns.spend(TurnWork::bytes() - work_from);
  return round;
}

/// Reads and sends letters in the transfer's turn.
void LetterTransfer::send() {
  if (parts_.sent != nullptr && !parts_.sent->has_room()) return work_at(EventLoop::Clock::now() + sent_rest);
  if (!parts_.turns.ask(*this, channel_.source.value)) {
    step_ = Step::queued;
    return;
  }
  Round round = read_round();
  if (const auto& obstacle = round.obstacle) {
    switch (obstacle->outcome) {
      case LetterSource::Read::Outcome::too_large:
        return give_up(obstacle->number, "with the headers of its death it exceeds the limits of a message");
      case LetterSource::Read::Outcome::pending: {
        const auto wait = std::exchange(read_rest_, std::min(2 * read_rest_, read_rest_max));
        return work_at(EventLoop::Clock::now() + wait);
      }
      default: return rest({ErrorCode::io_error, "the next message cannot be read now"});
    }
  }
  read_rest_ = read_rest_min;
  if (round.letters.empty()) return work_at(EventLoop::Clock::now());
  // Tasks are copied. The letters are not.
  const auto letters = std::make_shared<std::vector<NumberedLetter>>(std::move(round.letters));
  const auto share = parts_.sent == nullptr ? nullptr : parts_.sent->add(round.bytes);
  const auto task = [channel = channel_, letters, share](LetterOffice& there) {
    there.take(channel, std::move(*letters));
  };
  if (!parts_.post.send(*target_, task)) return rest({ErrorCode::busy, "its thread has too much work"});
  step_ = Step::sending;
  await_answer();
}

void LetterTransfer::turned() {
  if (step_ != Step::queued) return;
  if (target_ && is_present()) return send();
  step_ = Step::idle;
  work();
}

void LetterTransfer::settled(std::uint64_t expected) {
  if (step_ != Step::opening && step_ != Step::sending) return;
  const bool is_first = step_ == Step::opening;
  const std::uint64_t next = source_->incarnation() == incarnation_ ? source_->next_number() : 0;
  if (next != 0) known_ = incarnation_;
  // The group was restored from an older state, and the target has letters of the time since. Their numbers
  // must not be given to other messages.
  const bool is_older = is_first && next != 0 && next < expected;
  const bool has_moved = finish_below(expected) || !is_first;
  if (is_older || asks_) {
    close();
    // A former target has none of the others, and gets none of them.
    if (source_->incarnation() == incarnation_) source_->renew();
  }
  if (has_moved || asks_) return proceed();
  step_ = Step::idle;  // that a channel opens does not show that messages can be moved
  work();
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
  source_->give_up(incarnation_, number);
  close();
  proceed();
}

void LetterTransfer::ended(const Error& why) {
  close();  // also while the group saves or the transfer rests: the next step opens another one
  if (step_ == Step::opening || step_ == Step::sending) rest(why);
}

void LetterTransfer::held(const Error& why) {
  if (step_ != Step::sending) return;
  if (!std::exchange(told_, true))
    parts_.sink.warn(source_->name() + ": dead messages wait for space in topic " + target_name_ + ": " +
                     why.message);
  source_->set_trouble(why.message);
}

/// Returns false if there was nothing to finish.
bool LetterTransfer::finish_below(std::uint64_t expected) {
  bool has_finished = false;
  for (const LetterSource::Message& message : source_->under_way()) {
    if (expected <= message.number) break;
    source_->done(incarnation_, message.number);
    has_finished = true;
  }
  return has_finished;
}

/// Continues after a step that shows that messages can be moved.
void LetterTransfer::proceed() {
  rest_ = rest_min;
  source_->set_trouble({});
  if (std::exchange(told_, false) && !asks_)
    parts_.sink.info(source_->name() + ": dead messages are moved to topic " + target_name_ + " again");
  step_ = Step::idle;
  work();
}

void LetterTransfer::rest(const Error& why) {
  if (!std::exchange(told_, true)) {
    const std::string what = asks_
                                 ? ": dead messages wait, because this topic may have some, and cannot tell: "
                                 : ": dead messages wait, because they cannot be moved to topic ";
    parts_.sink.error(source_->name() + what + target_name_ + (asks_ ? ": " : " now: ") + why.text());
  }
  // Every user that may read the topic sees the statistics: they contain no path.
  const bool tells_all = step_ != Step::saving;
  source_->set_trouble(tells_all ? why.message : std::string(to_word(why.code)));
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
  parts_.post.answer(*target_, [channel = channel_](LetterOffice& there) { there.close_producer(channel); });
  target_.reset();
}

}  // namespace lightq::broker
