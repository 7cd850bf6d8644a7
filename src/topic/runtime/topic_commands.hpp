/// Commands of the control socket on a topic: groups, their settings and dead messages, purging. Layer:
/// topic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <lightq/base/result.hpp>
#include <lightq/protocol/group_control.hpp>

#include "delivery/dead/dead_message.hpp"
#include "delivery/group_dead.hpp"
#include "delivery/topic.hpp"
#include "store/topic_store.hpp"
#include "topic/runtime/cursor_saves.hpp"
#include "topic/runtime/message_tracing.hpp"
#include "topic/runtime/topic_activity.hpp"
#include "topic/runtime/topic_purges.hpp"
#include "topic/runtime/topic_reads.hpp"
#include "topic/runtime/waiting_producers.hpp"

namespace lightq::broker {

/// The effect of a command on dead messages.
enum class DeadAction : std::uint8_t {
  count,  ///< counts those that the filter means
  retry,  ///< makes them ready, as if they had never failed
  purge,  ///< finishes them
};

/// Executes commands, and answers them when their effect survives a kill of the broker.
/// TopicRuntime owns it; the reactor calls it for the control thread. Thread: the reactor's.
class TopicCommands {
 public:
  using Answered = CursorSaves::Answered;

  /// Lifetime: all parameters outlive this.
  TopicCommands(Topic& topic, TopicStore& store, CursorSaves& cursors, TopicPurges& purges,
                WaitingProducers& held, TopicReads& reads, TopicActivity& activity)
      : topic_(topic),
        store_(store),
        cursors_(cursors),
        purges_(purges),
        held_(held),
        reads_(reads),
        activity_(activity) {}

  /// Deletes the group. Calls `answered`, perhaps within this call, when the deletion survives a kill of the
  /// broker. Errors: group_not_found, group_in_use, shutting_down. After io_error or no_space the group stays
  /// deleted only until the broker ends.
  void delete_group(const std::string& group, const Answered& answered);
  /// Pauses or resumes dispatch to all consumers of the topic.
  void set_paused(bool paused);
  /// Changes the given settings of the topic: see DataPlane::change_topic.
  Result<void> change(const protocol::TopicChange& change);
  /// Pauses or resumes dispatch to one group. Calls `answered`, perhaps within this call, when the change
  /// survives a kill of the broker. Errors: group_not_found, shutting_down. After io_error or no_space the
  /// change lasts only until the broker ends.
  void set_group_paused(const std::string& group, bool paused, const Answered& answered);
  /// Returns the effect that seek_group would have now. Errors: group_not_found; io_error if the place is
  /// among messages that cannot be read now.
  Result<protocol::GroupMove> group_move(const std::string& group, const protocol::GroupPlace& to);
  /// Moves the group to an offset of the log. Calls `answered`, perhaps within this call, when that survives
  /// a kill of the broker. Errors: as of purge_group.
  void seek_group(const std::string& group, Offset to, const Answered& answered);
  /// Moves the group past all stored messages. Calls `answered`, perhaps within this call, when that survives
  /// a kill of the broker. The result is the number of messages that the group had not processed. Errors:
  /// group_not_found, shutting_down. After io_error or no_space the change lasts only until the broker ends.
  void purge_group(const std::string& group, const Answered& answered);
  /// Sets the settings of the group of this name, whether it exists now or later. Calls `answered`, perhaps
  /// within this call; if messages were parked, when that survives a kill of the broker. Errors:
  /// shutting_down; io_error, no_space (the settings are in force).
  void set_group_settings(const std::string& group, const GroupSetup& setup, const Answered& answered);
  /// Lists the group's dead messages from offset `from` on, at most `most`, for about a millisecond. With a
  /// key it reads the messages from the log; see messages_with_key. Errors: group_not_found.
  Result<DeadList> list_dead(const std::string& group, const DeadFilter& filter, Offset from,
                             std::size_t most);
  /// Traces a message on, for about a millisecond: see MessageTracing::work.
  Result<MessageTracing::Then> trace(MessageTracing& tracing, const ClockReading& clocks) {
    return tracing.work(topic_, reads_, clocks);
  }
  /// Acts on the group's dead messages from offset `from` on, for about a millisecond. Call again from the
  /// result's `next`, and at last answer_when_saved. If the result is pending, `next` can be read when
  /// TopicReads reports it. Errors: as for list_dead.
  Result<DeadPiece> act_on_dead(const std::string& group, DeadAction action, const DeadFilter& filter,
                                Offset from);
  /// Calls `answered` with `messages`, perhaps within this call, when the present state of all groups
  /// survives a kill of the broker. Errors: shutting_down, io_error, no_space.
  void answer_when_saved(std::uint64_t messages, const Answered& answered) {
    cursors_.answer_when_saved(messages, answered);
  }
  /// Moves every group and subscriber past all stored messages, and drops the messages: see
  /// TopicPurges::begin.
  void purge(const Answered& answered) { purges_.begin(answered); }

 private:
  [[nodiscard]] Result<ConsumerGroup*> group_of(const std::string& name);
  DeadPiece act_on_keyed(GroupDead& dead, DeadAction action, const DeadFilter& filter, Offset from);

  Topic& topic_;
  TopicStore& store_;
  CursorSaves& cursors_;
  TopicPurges& purges_;
  WaitingProducers& held_;
  TopicReads& reads_;
  TopicActivity& activity_;
};

}  // namespace lightq::broker
