/// A topic: one log, the groups and subscribers that read it, and its counters. Layer: delivery.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <lightq/base/batch.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>
#include <lightq/protocol/control.hpp>

#include "admission/range_budget.hpp"
#include "delivery/carry_over.hpp"
#include "delivery/consumer_groups.hpp"
#include "delivery/dispatch_turn.hpp"
#include "delivery/expiry/topic_expiry.hpp"
#include "delivery/record_reader.hpp"
#include "delivery/record_sink.hpp"
#include "delivery/slice_source.hpp"
#include "delivery/state/damage_count.hpp"
#include "delivery/state/delayed_share.hpp"
#include "delivery/state/delivery_context.hpp"
#include "delivery/state/group_limits.hpp"
#include "delivery/state/group_time.hpp"
#include "delivery/state/topic_flow.hpp"
#include "delivery/subscribers.hpp"
#include "delivery/topic_definition.hpp"
#include "log/log.hpp"

namespace lightq::broker {

/// The result of publishing a batch.
enum class PublishOutcome {
  accepted,  ///< in the log
  held,      ///< no space under `block`, or no disk: offer the same batch again after the next progress
  rejected,  ///< no space under `reject`; counted
  refused,   ///< can never fit; counted
};

/// A complete batch that a producer wants to append.
struct OfferedBatch {
  std::span<std::byte> bytes;  ///< header and records, body checksum included; the log stamps the rest
  std::uint32_t records = 0;   ///< at least 1
  std::uint64_t payload_bytes = 0;
  OwnTtl ttl = OwnTtl::unknown;
  std::int64_t uniform_ttl_ms = 0;  ///< the time to live that each message has; 0: not known
};

/// Connects one log with its consumers: appends batches, dispatches to groups and subscribers, and lets the
/// log drop finished messages. docs/design.md, "Semantics", gives the rules.
/// Owns the groups and the subscribers. TopicRuntime owns it and calls it.
/// Thread: the reactor's. Has no sockets and no clock, and starts no threads.
class Topic {
 public:
  /// `budget` is the one that ConsumerGroups documents. Lifetime: `log` and `budget` outlive the topic.
  Topic(TopicDefinition definition, log::BatchLog& log, Timestamp since, const GroupLimits& group_limits = {},
        RangeBudget* budget = nullptr);

  [[nodiscard]] const TopicDefinition& definition() const { return definition_; }
  [[nodiscard]] log::BatchLog& log() { return *log_; }
  [[nodiscard]] const log::BatchLog& log() const { return *log_; }

  // Producers.

  /// Returns false if producers must not be read now: the topic is `direct` and no consumer is connected.
  [[nodiscard]] bool accepting() const;
  /// Returns the size in bytes of the batches into which plain messages are packed, roughly.
  [[nodiscard]] std::size_t batch_bytes_target() const;
  PublishOutcome publish(BatchBuilder& batch, Timestamp now);
  PublishOutcome publish(const OfferedBatch& batch, Timestamp now);
  /// Publishes for a producer that keeps a batch which is not accepted. So the outcome is not counted, unless
  /// it is `accepted`.
  PublishOutcome offer(const OfferedBatch& batch, Timestamp now);
  /// Returns memory of the log for the next batch to publish; see BatchLog::place_for_next. Empty if the log
  /// would have to drop messages first.
  std::span<std::byte> place_for_next(std::size_t bytes) {
    return delayed_.leaves_log(log_->stored_bytes(), bytes) ? log_->place_for_next(bytes)
                                                            : std::span<std::byte>();
  }
  /// Counts messages that were rejected or refused. Returns `outcome`.
  PublishOutcome counted(PublishOutcome outcome, std::uint64_t messages) {
    if (outcome == PublishOutcome::rejected) rejected_ += messages;
    if (outcome == PublishOutcome::refused) refused_ += messages;
    return outcome;
  }
  /// Returns the share of the capacity that delayed messages take.
  [[nodiscard]] DelayedShare& delayed() { return delayed_; }
  /// Makes room for delayed messages that count as `bytes`: drops messages of the log as a publish does.
  /// Returns true if there is room.
  bool make_room(std::uint64_t bytes);
  /// Returns why producers wait: empty, `group:NAME`, `disk`, `delayed` (delayed messages alone leave no
  /// room), or `nobody connected`.
  [[nodiscard]] std::string blocked_by() const;
  /// Returns true if the last batch that was not appended waits for the disk, not for a consumer.
  [[nodiscard]] bool held_by_disk() const { return held_by_disk_; }
  void set_producers_held(bool held) { producers_held_ = held; }

  /// Prefetches memory that a publish will use; see TopicRuntime.
  void fetch_ahead_for_input(unsigned step) const;
  /// Returns the end of the part that a publish, a delivery or an acknowledgement uses. The part starts with
  /// the object.
  [[nodiscard]] const void* hot_end() const { return groups_.hot_end(); }

  // Consumers.

  /// Returns all groups. Session consumers attach to them directly.
  [[nodiscard]] ConsumerGroups& groups() { return groups_; }
  [[nodiscard]] const ConsumerGroups& groups() const { return groups_; }
  /// Returns the number of connected consumers of all kinds.
  [[nodiscard]] std::size_t consumers() const {
    return groups_.pullers() + groups_.members() + subscribers_.attached();
  }

  /// Creates the group of all plain pullers, at the first plain join.
  void open_group() { groups_.open_plain(); }
  void attach_puller(RecordSink& consumer);
  void detach_puller(RecordSink& consumer);

  /// Returns all subscribers. Endpoints add and connect them directly.
  [[nodiscard]] Subscribers& subscribers() { return subscribers_; }

  struct DispatchResult {
    bool more = false;      ///< consumers could take more now: dispatch again soon
    bool progress = false;  ///< messages were delivered or space was freed: waiting producers may try again
    std::uint64_t held_back = 0;  ///< groups whose redelivery queue is newly full
    bool dead_waiting = false;    ///< a group has dead messages that wait for a transfer
  };
  /// Dispatches to all groups and subscribers, a bounded amount.
  DispatchResult dispatch(const DeliveryContext& context = {});

  /// Pauses or resumes delivery to all consumers, independently of each group's pause. Everything else works.
  void set_paused(bool paused);
  /// Moves every cursor behind all stored messages. Messages in flight count as finished. Returns how many
  /// messages are stored.
  std::uint64_t finish_all();

  /// Delivers messages from the reader's position on to `turn`, for a `read` without a cursor, expired ones
  /// too. Counts damaged messages.
  template <DispatchTurn Turn>
  TurnEnd read(RecordReader& reader, Turn& turn, const DeliveryContext& context) {
    DeliveryContext shown = context;
    shown.expiry = expiry_.index();
    shown.shows_expired = true;
    SliceSource source(*log_, shown, reader);
    const TurnEnd end = dispatch_turn(source, turn);
    damage_.note(reader.take_damage());
    return end;
  }

  /// Changes the given settings. The definition has them, too. The log's own limits are the caller's.
  void change(const protocol::TopicChange& change);
  /// Returns the times to live of the messages. `dispatch` lets messages expire.
  [[nodiscard]] TopicExpiry& expiry() { return expiry_; }
  /// Returns the part that copies messages before the log drops them. Its `sweep` is called about every 100
  /// ms.
  [[nodiscard]] CarryOver& carry_over() { return carry_over_; }

  /// Returns when to call `dispatch` next: to take back messages, deliver delayed ones, or try to read again.
  [[nodiscard]] SteadyTime next_timer() const {
    return std::min(groups_.next_timer(), subscribers_.next_timer());
  }
  /// Returns the error because of which consumers wait: the messages for them are unavailable. Returns null
  /// if no consumer waits for this reason.
  [[nodiscard]] const Error* unavailable() const;

  // Statistics.

  /// Returns the topic's statistics. The endpoints add the connected producers and the subscribers'
  /// addresses. `now` is the log's time, for the age of messages; `steady` the same moment on the clock of
  /// dispatches, for due times. Without it they stay 0. `members_max`: the most members of groups.
  [[nodiscard]] protocol::TopicStats stats(Timestamp now = {}, SteadyTime steady = {},
                                           std::uint64_t members_max = 0) const;
  /// Returns the counters that a history samples. It costs a small part of `stats`.
  [[nodiscard]] TopicFlow flow() const;

 private:
  PublishOutcome outcome_of(log::AppendOutcome outcome);
  bool drop_for(std::size_t bytes, RoomIn needed);
  void trim();
  [[nodiscard]] std::uint64_t queue_size() const;

  // A publish, a delivery and an acknowledgement use these, up to the first part of groups_: hot_end()
  // depends on this order.
  log::BatchLog* const log_;
  const void* const log_hot_part_;
  const bool direct_;
  bool producers_held_ = false;
  bool held_by_disk_ = false;
  bool delayed_leave_too_little_ = false;  // the last batch without room would have none in an empty log
  DelayedShare delayed_;
  Subscribers subscribers_;
  Offset furthest_;  // the highest offset that a cursor other than the plain group's has reached
  std::uint64_t received_ = 0;
  std::uint64_t received_bytes_ = 0;
  std::uint64_t sent_to_group_ = 0;
  std::uint64_t sent_to_furthest_ = 0;
  std::uint64_t deliveries_to_groups_ = 0;
  std::uint64_t delivered_bytes_ = 0;
  TopicExpiry expiry_;
  ConsumerGroups groups_;

  TopicDefinition definition_;
  Timestamp since_;
  Timestamp disk_failed_;  // the last failure, while held_by_disk_
  std::uint64_t rejected_ = 0;
  std::uint64_t refused_ = 0;
  std::uint64_t unclaimed_dropped_ = 0;
  DamageCount damage_;
  CarryOver carry_over_;
};

/// Tells the groups which messages the log has dropped. Called after the log's upkeep, which may drop some:
/// requests that come before the next dispatch must not find them.
void note_dropped(Topic& topic);

}  // namespace lightq::broker
