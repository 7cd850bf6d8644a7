/// Purges of a topic that wait for its producers to be saved. Layer: topic.
#include "topic/runtime/topic_purges.hpp"

#include <chrono>
#include <utility>

namespace lightq::broker {

void TopicPurges::begin(const Answered& answered) {
  if (parts_.activity.is_stopping())
    return answered(Error{ErrorCode::shutting_down, "the broker is stopping"});
  if (const auto ended = parts_.store.end_segment(); !ended) return answered(ended.error());
  const std::uint64_t messages = parts_.topic.finish_all();
  pending_.push_back({parts_.store.next_offset(), messages, parts_.known.ask_for_save(), answered});
  settle();
  parts_.held.resume_soon();
  parts_.activity.want_ticks();
}

void TopicPurges::settle() {
  std::vector<Pending> settled;
  std::erase_if(pending_, [&](Pending& purge) {
    if (!parts_.known.is_settled(purge.change)) return false;
    settled.push_back(std::move(purge));
    return true;
  });
  for (const Pending& purge : settled) {
    parts_.cursors.set_purged(purge.before);
    parts_.cursors.answer_when_saved(purge.messages, [this, purge](const Result<std::uint64_t>& saved) {
      if (!saved) return try_later(purge, saved.error());
      drop(purge.before);
      purge.answered(saved);
    });
  }
}

void TopicPurges::drop(Offset before) {
  parts_.store.drop_before(before);
  parts_.held.resume_soon();  // waiting producers have space now
  parts_.activity.want_ticks();
}

void TopicPurges::fail(const Error& why) {
  for (Pending& purge : std::exchange(pending_, {})) try_later(std::move(purge), why);
}

/// Retries a purge on a full disk, for at most `patience`. A full disk may be the reason for the purge, so
/// the files are deleted first, which frees the space that saving needs. A broker that is killed in between
/// may deliver purged messages again, or not know their producers.
void TopicPurges::try_later(Pending purge, const Error& why) {
  constexpr auto patience = std::chrono::seconds(3);
  if (why.code != ErrorCode::no_space || parts_.activity.is_stopping()) return purge.answered(why);
  drop(purge.before);
  const auto now = EventLoop::Clock::now();
  if (purge.give_up == SteadyTime{}) purge.give_up = now + patience;
  if (purge.give_up <= now) return purge.answered(why);
  again_.push_back(std::move(purge));
  parts_.activity.want_ticks();
}

void TopicPurges::retry() {
  if (again_.empty()) return;
  for (Pending& purge : std::exchange(again_, {})) {
    purge.change = parts_.known.ask_for_save();
    pending_.push_back(std::move(purge));
  }
  settle();
}

void TopicPurges::end(const Error& why) {
  fail(why);
  for (const Pending& purge : std::exchange(again_, {})) purge.answered(why);
}

}  // namespace lightq::broker
