/// Purges of a topic that wait for its producers to be saved. Layer: topic.
#pragma once

#include <cstdint>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

#include "delivery/producers/durable_producers.hpp"
#include "delivery/topic.hpp"
#include "store/topic_store.hpp"
#include "topic/runtime/cursor_saves.hpp"
#include "topic/runtime/topic_activity.hpp"
#include "topic/runtime/waiting_producers.hpp"

namespace lightq::broker {

/// Skips the messages of a purge for all consumers immediately, and deletes their files last. They stay until
/// a start does not need them to know the producers, and until the purge is recorded. So no purged message
/// reappears if the broker is killed before the files are gone.
/// TopicSaves owns it; commands and the store's reports call it. Thread: the reactor's.
class TopicPurges {
 public:
  using Answered = CursorSaves::Answered;
  /// Lifetime: all of them outlive this.
  struct Parts {
    TopicStore& store;
    Topic& topic;
    DurableProducers& known;
    CursorSaves& cursors;
    WaitingProducers& held;
    TopicActivity& activity;
  };

  explicit TopicPurges(const Parts& parts) : parts_(parts) {}

  /// Begins a purge of all stored messages. Calls `answered`, perhaps within this call, when the purge
  /// survives a kill of the broker. The result is the number of messages that were stored. Errors: io_error,
  /// no_space, shutting_down.
  void begin(const Answered& answered);
  /// Continues with each purge after its change of the producers has been saved.
  void settle();
  /// Called when the producers cannot be saved: ends the purges, or retries them if the disk is full.
  void fail(const Error& why);
  /// Begins purges again that found the disk full. Called at each tick.
  void retry();
  /// Returns true if `retry` has something to do.
  [[nodiscard]] bool wants_retry() const { return !again_.empty(); }
  /// Answers all purges with the error `why`.
  void end(const Error& why);

 private:
  /// A purge that drops its messages once the saved producers do not depend on them.
  struct Pending {
    Offset before;
    std::uint64_t messages = 0;
    std::uint64_t change = 0;  // the change of the producers that must be saved first
    Answered answered;
    SteadyTime give_up{};  // on a full disk: saving is retried until then
  };

  void drop(Offset before);
  void try_later(Pending purge, const Error& why);

  const Parts parts_;
  std::vector<Pending> pending_;
  std::vector<Pending> again_;  // retried at the next tick: the disk was full
};

}  // namespace lightq::broker
