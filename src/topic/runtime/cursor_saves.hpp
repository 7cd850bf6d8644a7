/// Saves the cursors of a topic's groups and subscribers. Layer: topic.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

#include "delivery/letters/letter_book.hpp"
#include "delivery/saves/group_cursors.hpp"
#include "delivery/state/log_lives.hpp"
#include "delivery/topic.hpp"
#include "log/saved_state/cursor_file.hpp"
#include "store/topic_store.hpp"
#include "topic/found_topic.hpp"
#include "topic/runtime/topic_activity.hpp"
#include "topic/runtime/topic_consumers.hpp"
#include "topic/runtime/topic_reports.hpp"
#include "topic/save_waiters.hpp"
#include "topic/topic_endpoints.hpp"

namespace lightq::broker {

/// Decides when a topic's cursors are saved, and answers the commands and consumers that wait for a save.
/// TopicSaves owns it; it calls `save` after dispatches and ticks, and `saved` when the store has saved.
/// Thread: the reactor's.
///
/// At most one save is running. It collects the state of the groups in pieces, one in each turn of the loop,
/// and passes the snapshot to the store, which encodes and writes it on other threads. Nothing is saved if
/// nothing has changed. A save costs *t*: the time of all pieces and of encoding. It may wait longer, for its
/// turn or for a disk, which does not count.
/// - The next save begins at least a second after the last one began, and at least 10 *t*, but at most 10
///   seconds, after it ended.
/// - A save that a command or consumer waits for begins immediately, but not before *t*, or 10 seconds, has
///   passed since the end of the last one.
class CursorSaves {
 public:
  /// Called once with the result of a command, when the command survives a kill of the broker.
  using Answered = std::function<void(const Result<std::uint64_t>&)>;
  /// Lifetime: all of them outlive this.
  struct Parts {
    TopicStore& store;
    Topic& topic;
    TopicEndpoints& endpoints;
    TopicConsumers& consumers;
    TopicActivity& activity;
    TopicReports& reports;
    const LogLives& lives;
    const LetterBook& book;
  };

  /// `found`: the cursors that the start has found.
  CursorSaves(const Parts& parts, const FoundTopic& found);

  /// Returns the offset of a cursor that was found at the start, or nothing if there was none of this name.
  [[nodiscard]] std::optional<Offset> found(const std::string& name) const {
    return log::offset_of_cursor(found_, name);
  }
  /// Begins a save if it is time, or if a command or consumer waits for it. Continues one that is collecting.
  void save();
  /// Returns true if a command or consumer waits for a save.
  [[nodiscard]] bool is_awaited() const { return parts_.consumers.waits_for_save() || waiters_.want_save(); }
  /// Returns true if `save` has to be called after the next dispatch.
  [[nodiscard]] bool wants_dispatch() const { return step_ == Step::collecting || is_awaited(); }
  /// Returns true if `save` has to be called again, even if nothing else happens: the last save has failed, a
  /// save is collecting or awaited, or there may be changes for which it was too early.
  [[nodiscard]] bool wants_ticks() const {
    return failed_ || later_ || (parts_.store.is_durable() && wants_dispatch());
  }
  /// Returns when to call `save` for the command or consumer that waits for it, or `never`. Right after
  /// `save`.
  [[nodiscard]] SteadyTime next_timer() const { return is_awaited() ? next_timer_ : never; }
  /// Called when a save has ended.
  void saved(const Result<void>& result);
  /// Saves the cursors before it returns, if they have changed. For a stop.
  Result<void> save_for_stop();

  /// Calls `answered` with `answer` when the present state of the cursors is saved; within this call if the
  /// topic is not durable. Errors: shutting_down, io_error, no_space.
  void answer_when_saved(std::uint64_t answer, const Answered& answered);
  /// Answers all commands that wait with the error `why`.
  void end_waiting(const Error& why) { waiters_.end(why); }
  /// Returns the end of the part that a dispatch uses. The part starts with the object.
  [[nodiscard]] const void* hot_end() const { return &begun_at_; }
  /// Records that the messages before `end` were purged. The next save contains it.
  void set_purged(Offset end) { purged_ = end; }

 private:
  enum class Step : std::uint8_t { idle, collecting, writing };

  [[nodiscard]] std::vector<log::NamedCursor> present_others() const;
  [[nodiscard]] bool is_too_early(SteadyTime now, bool awaited);
  void collect();
  Result<void> save_now(const TopicStore::MakeCursors& cursors);

  // A dispatch uses these up to begun_at_: hot_end() depends on this order.
  const Parts parts_;
  Step step_ = Step::idle;
  bool failed_ = false;
  bool kept_ = false;   // the state at the last begin is durable on disk
  bool later_ = false;  // the last call of `save` was too early
  SaveWaiters waiters_;
  std::optional<SteadyTime> begun_at_;  // the last save, or the last time when nothing had changed
  SteadyTime next_timer_ = never;
  SteadyTime ended_at_{};               // the last save
  SteadyTime::duration collecting_{0};  // all pieces of the present or last save
  SteadyTime::duration cost_{0};        // of the last save: collecting and encoding
  GroupCursors groups_;
  std::vector<log::NamedCursor> others_;       // by name, without groups': as last saved or loaded
  std::optional<Offset> purged_;               // the end of the last purge
  const std::vector<log::NamedCursor> found_;  // by name, without groups'
};

}  // namespace lightq::broker
