/// Saves the cursors of a topic's groups and subscribers. Layer: topic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

#include "delivery/log_lives.hpp"
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

/// Decides when a topic's cursors are saved, and answers the commands and consumers that wait for a save. At
/// most one save is running. TopicSaves owns it; it calls `save` after dispatches and ticks, and `saved` when
/// the store has saved. Thread: the reactor's.
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
  };

  /// `found`: the cursors that the start has found.
  CursorSaves(const Parts& parts, const FoundTopic& found);

  /// Returns the offset of a cursor that was found at the start, or nothing if there was none of this name.
  [[nodiscard]] std::optional<Offset> found(const std::string& name) const {
    return log::offset_of_cursor(found_, name);
  }
  /// Saves the cursors if it is time, or if a command or consumer waits for it.
  void save(Timestamp now);
  /// Returns true if a command or consumer waits for a save.
  [[nodiscard]] bool is_awaited() const { return parts_.consumers.waits_for_save() || waiters_.want_save(); }
  /// Returns true if the last save has failed, so that another one follows.
  [[nodiscard]] bool failed() const { return failed_; }
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
  [[nodiscard]] const void* hot_end() const { return &saved_at_; }
  /// Records that the messages before `end` were purged. The next save contains it.
  void set_purged(Offset end) { purged_ = end; }

 private:
  [[nodiscard]] std::vector<log::NamedCursor> current(std::size_t ranges_max) const;

  // A dispatch uses these up to saved_at_: hot_end() depends on this order.
  const Parts parts_;
  bool running_ = false;  // a save is under way
  bool failed_ = false;
  bool kept_ = false;  // saved_ is durable on disk
  SaveWaiters waiters_;
  Timestamp saved_at_;
  std::int64_t saved_ranges_ = 0;              // the number of ranges in saved_
  std::vector<log::NamedCursor> saved_;        // by name: as last written or loaded
  std::optional<Offset> purged_;               // the end of the last purge
  const std::vector<log::NamedCursor> found_;  // by name
};

}  // namespace lightq::broker
