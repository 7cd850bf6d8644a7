/// Commands of the control socket on a topic: deleting and pausing groups, purging. Layer: topic.
#include <chrono>
#include <utility>

#include "topic/topic_runtime.hpp"

namespace lightq::broker {

namespace {

constexpr std::uint64_t hurry_from_bytes = 16 * limits::MiB;

Error stopping() {
  return {ErrorCode::shutting_down, "the broker is stopping"};
}

}  // namespace

Result<ConsumerGroup*> TopicRuntime::group_of(const std::string& name) {
  if (ConsumerGroup* const found = topic_.groups().find(name)) return found;
  return Error{ErrorCode::group_not_found, "topic " + definition().name.text() + " has no group " + name};
}

void TopicRuntime::delete_group(const std::string& group, const Answered& answered) {
  const auto found = group_of(group);
  if (!found) return answered(found.error());
  if ((*found)->consumers() > 0) {
    return answered(Error{ErrorCode::group_in_use, "topic " + definition().name.text() + ", group " + group +
                                                       ": " + std::to_string((*found)->consumers()) +
                                                       " consumers are connected"});
  }
  topic_.groups().remove(**found);
  resume_held();
  want_ticks();
  answer_when_saved(0, answered);
}

void TopicRuntime::set_paused(bool paused) {
  topic_.set_paused(paused);
  want_dispatch();
}

void TopicRuntime::set_group_paused(const std::string& group, bool paused, const Answered& answered) {
  const auto found = group_of(group);
  if (!found) return answered(found.error());
  (*found)->set_paused(paused);
  answer_when_saved(0, answered);
}

void TopicRuntime::purge_group(const std::string& group, const Answered& answered) {
  const auto found = group_of(group);
  if (!found) return answered(found.error());
  const std::uint64_t messages = topic_.groups().pass_over(**found);
  session_consumers_changed();
  answer_when_saved(messages, answered);
}

void TopicRuntime::answer_when_saved(std::uint64_t answer, const Answered& answered) {
  want_dispatch();
  if (!store().is_durable()) return answered(answer);
  if (stopping_) return answered(stopping());
  cursor_waiters_.add([answer, answered](const Result<void>& saved) {
    if (!saved) return answered(saved.error());
    answered(answer);
  });
}

/// Skips the messages for all consumers immediately, and deletes the files last. They stay until a start does
/// not need them to know the producers, and until the purge is recorded. So no purged message reappears if
/// the broker is killed before the files are gone.
void TopicRuntime::purge(const Answered& answered) {
  if (stopping_) return answered(stopping());
  if (const auto ended = store().end_segment(); !ended) return answered(ended.error());
  const std::uint64_t messages = topic_.pass_over_all();
  purges_.push_back({store().next_offset(), messages, known_producers_->ask_for_save(), answered});
  settle_purges();
  session_consumers_changed();
  want_ticks();
}

/// Continues with each purge after its change of the producers has been saved.
void TopicRuntime::settle_purges() {
  std::vector<PendingPurge> settled;
  std::erase_if(purges_, [&](PendingPurge& purge) {
    if (!known_producers_->is_settled(purge.change)) return false;
    settled.push_back(std::move(purge));
    return true;
  });
  for (const PendingPurge& purge : settled) {
    purged_ = purge.before;
    answer_when_saved(purge.messages, [this, purge](const Result<std::uint64_t>& saved) {
      if (!saved) return purge_again(purge, saved.error());
      drop_purged(purge.before);
      purge.answered(saved);
    });
  }
}

void TopicRuntime::drop_purged(Offset before) {
  store().drop_before(before);
  session_consumers_changed();  // waiting producers have space now
  want_ticks();
}

/// Keeps the files of messages that retention or the capacity has dropped until the saved producers do not
/// depend on them. Otherwise the producers would be unknown after a kill. If many bytes wait, the producers
/// are saved immediately. If they cannot be saved for lack of space, the files are deleted to free it.
void TopicRuntime::hurry_producers() {
  if (!store().is_durable()) return;
  constexpr Offset nothing{~std::uint64_t{0}};
  store().keep_dropped_from(producers_lack_space_ ? nothing : known_producers_->needed_from());
  const DroppedMessages dropped = store().dropped();
  if (dropped.end <= known_producers_->needed_from()) {
    told_of_dropped_ = false;
    return;
  }
  known_producers_->want_past(dropped.end);
  if (dropped.bytes < hurry_from_bytes) return;
  if (known_producers_->is_settled(hurried_change_)) hurried_change_ = known_producers_->ask_for_save();
  if (dropped.bytes <= dropped.bytes_max || std::exchange(told_of_dropped_, true)) return;
  context_.sink.error("topic " + definition().name.text() +
                      ": messages are dropped faster than its producers can be saved; after a crash the "
                      "broker may not know these producers");
}

void TopicRuntime::end_purges(const Error& why) {
  for (PendingPurge& purge : std::exchange(purges_, {})) purge_again(std::move(purge), why);
}

/// Retries a purge on a full disk, for at most `patience`. A full disk may be the reason for the purge, so
/// the files are deleted first, which frees the space that saving needs. A broker that is killed in between
/// may deliver purged messages again, or not know their producers.
void TopicRuntime::purge_again(PendingPurge purge, const Error& why) {
  constexpr auto patience = std::chrono::seconds(3);
  if (why.code != ErrorCode::no_space || stopping_) return purge.answered(why);
  drop_purged(purge.before);
  const auto now = EventLoop::Clock::now();
  if (purge.give_up == SteadyTime{}) purge.give_up = now + patience;
  if (purge.give_up <= now) return purge.answered(why);
  purges_again_.push_back(std::move(purge));
  want_ticks();
}

void TopicRuntime::try_purges_again() {
  if (purges_again_.empty()) return;
  for (PendingPurge& purge : std::exchange(purges_again_, {})) {
    purge.change = known_producers_->ask_for_save();
    purges_.push_back(std::move(purge));
  }
  settle_purges();
}

/// Answers all commands that still wait.
void TopicRuntime::end_commands(ClientError why) {
  const Error error =
      why == ClientError::topic_deleted ? Error{ErrorCode::topic_not_found, "topic not found"} : stopping();
  end_purges(error);
  for (const PendingPurge& purge : std::exchange(purges_again_, {})) purge.answered(error);
  cursor_waiters_.end(error);
}

}  // namespace lightq::broker
