/// A topic's dead messages, for their transfer to another topic. Layer: topic.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

#include "delivery/letters/dead_letter.hpp"
#include "delivery/topic.hpp"
#include "store/topic_store.hpp"
#include "topic/runtime/cursor_saves.hpp"
#include "topic/runtime/topic_activity.hpp"
#include "topic/runtime/topic_reads.hpp"

namespace lightq::broker {

/// Reads dead messages, and saves the state of the groups for transfers. TopicRuntime owns it; the transfers
/// of its groups (topic/dead) call it. Thread: the reactor's.
class TopicLetters {
 public:
  /// Lifetime: all parameters outlive this.
  TopicLetters(Topic& topic, TopicStore& store, CursorSaves& cursors, TopicReads& reads,
               TopicActivity& activity)
      : topic_(topic), store_(store), cursors_(cursors), reads_(reads), activity_(activity) {}

  [[nodiscard]] const TopicDefinition& definition() const { return topic_.definition(); }
  [[nodiscard]] ConsumerGroups& groups() { return topic_.groups(); }
  /// Calls `answered`, perhaps within this call, when the present state of the groups survives a crash, or
  /// cannot be saved.
  void save(CursorSaves::Answered answered) { cursors_.answer_when_saved(0, answered); }
  /// Requests that the present messages of the topic become durable.
  void want_flush() {
    store_.request_flush(store_.next_offset());
    activity_.want_dispatch();
  }
  /// Called when the state of a group was changed: dispatches and saves soon.
  void changed() {
    activity_.want_dispatch();
    activity_.want_ticks();
  }

  /// The result of reading a message.
  struct Read {
    bool is_pending = false;                   ///< the disk is reading it
    bool is_lost = false;                      ///< it is damaged, or the log no longer has it
    std::optional<Result<DeadLetter>> letter;  ///< nothing: it cannot be read now, or is lost
  };
  /// Makes the letter of the message at death.offset. Counts a damaged one.
  Read read(const DeathAccount& death);

 private:
  Topic& topic_;
  TopicStore& store_;
  CursorSaves& cursors_;
  TopicReads& reads_;
  TopicActivity& activity_;
};

}  // namespace lightq::broker
