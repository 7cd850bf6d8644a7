/// A topic: one log, the groups and the subscribers that read it, and what has been counted. Layer: delivery.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <lightq/base/batch.hpp>

#include "broker/delivery/damage_count.hpp"
#include "broker/delivery/group_set.hpp"
#include "broker/delivery/subscriber.hpp"
#include "broker/delivery/topic_definition.hpp"
#include "log/log.hpp"

namespace lightq::broker {

/// What became of a published batch.
enum class PublishOutcome {
  accepted,  ///< in the log
  held,      ///< no room under `block`, or no disk: offer the same batch again after the next progress
  rejected,  ///< no room under `reject`; counted
  refused,   ///< can never fit; counted
};

/// A whole batch that somebody wants to have in the log.
struct OfferedBatch {
  std::span<std::byte> bytes;  ///< header and records, body checksum included; the log stamps the rest
  std::uint32_t records = 0;   ///< at least 1
  std::uint64_t payload_bytes = 0;
};

/// See docs/design.md, "Who holds the log", for the rules. No sockets, no clock, no threads: the reactor's
/// thread.
class Topic {
 public:
  /// `budget`: see GroupSet.
  Topic(TopicDefinition definition, std::unique_ptr<log::Log> log, Timestamp since,
        const GroupLimits& group_limits = {}, RangeBudget* budget = nullptr);

  [[nodiscard]] const TopicDefinition& definition() const { return definition_; }
  [[nodiscard]] log::Log& log() { return *log_; }
  /// Its log, which is to outlive it: the topic is destroyed next.
  [[nodiscard]] std::unique_ptr<log::Log> release_log() { return std::move(owned_log_); }
  [[nodiscard]] const log::Log& log() const { return *log_; }

  // Producers.

  /// False: do not read from producers now (`direct`, and nobody is connected).
  [[nodiscard]] bool accepting() const;
  /// Plain messages are packed into batches of about this many bytes.
  [[nodiscard]] std::size_t batch_bytes_target() const;
  PublishOutcome publish(BatchBuilder& batch, Timestamp now);
  PublishOutcome publish(const OfferedBatch& batch, Timestamp now);
  /// See Log. What is published next may lie there.
  std::span<std::byte> place_for_next(std::size_t bytes) { return log_->place_for_next(bytes); }
  void count_refused(std::uint64_t messages) { refused_ += messages; }
  /// Why producers are held back: empty, `group:NAME`, `disk`, or `nobody connected`.
  [[nodiscard]] std::string blocked_by() const;
  /// The last batch that was held waits for the disk, not for a consumer.
  [[nodiscard]] bool held_by_disk() const { return held_by_disk_; }
  void set_producers_held(bool held) { producers_held_ = held; }

  /// See HostedTopic.
  void fetch_ahead_for_input(unsigned step) const;

  // Consumers.

  /// All groups; who joins over a session is attached there.
  [[nodiscard]] GroupSet& groups() { return groups_; }
  [[nodiscard]] const GroupSet& groups() const { return groups_; }
  /// Connected, of every kind.
  [[nodiscard]] std::size_t consumers() const {
    return pullers() + groups_.members() + attached_subscribers_;
  }

  /// The group of all plain pullers, from its first join on.
  void open_group() { groups_.open_plain(); }
  void attach_puller(Outlet& outlet);
  void detach_puller(Outlet& outlet);
  [[nodiscard]] std::size_t pullers() const { return groups_.pullers(); }

  /// A new subscriber, at `from` or at the next message. Lives until remove_subscriber.
  Subscriber& add_subscriber(std::optional<Offset> from);
  void remove_subscriber(Subscriber& subscriber);
  void attach_subscriber(Subscriber& subscriber, Outlet& outlet);
  void detach_subscriber(Subscriber& subscriber);
  /// Its consumer is still connected, and still sent what it was handed; it just wants no more.
  void pause_subscriber(Subscriber& subscriber);

  struct Pumped {
    bool more = false;            ///< consumers could take more now: pump again soon
    bool progress = false;        ///< something was handed out or freed: held producers may try again
    std::uint64_t held_back = 0;  ///< groups that have come to returned_ranges_max
  };
  /// Hands out what can be handed out, a bounded amount. `now` is for those who acknowledge.
  Pumped pump(SteadyTime now = {});

  /// Paused: pump hands nothing to anybody, whatever each group is. All else goes on as ever.
  void set_paused(bool paused);
  [[nodiscard]] bool is_paused() const { return definition_.paused; }
  /// Every group and subscriber goes on behind all that is stored; what was handed out is done with. How many
  /// messages are stored.
  std::uint64_t pass_over_all();

  /// The next of what somebody reads without a cursor, as RecordWalk::next_slice; what cannot be read counts.
  std::optional<BatchSlice> read_slice(RecordWalk& walk, Offset end, std::uint64_t message_bytes_max,
                                       CodecSet codecs);

  /// When a pump has something to take back, to hand out after a delay, or to try again.
  [[nodiscard]] SteadyTime next_timer() const { return std::min(groups_.next_timer(), subscribers_timer_); }
  /// Why consumers wait though there are messages for them: these cannot be read now. Null: nobody does.
  [[nodiscard]] const Error* unavailable() const;

  // Cursors, statistics.

  [[nodiscard]] std::optional<Offset> group_committed() const;
  /// `now`: the log's time, for the age of messages. Everything but the connected producers and the
  /// subscribers' addresses, which the endpoints know.
  [[nodiscard]] protocol::TopicStats stats(Timestamp now = {}) const;
  [[nodiscard]] protocol::SubscriberStats subscriber_stats(const Subscriber& subscriber) const;

 private:
  [[nodiscard]] bool waits_for_disk(Timestamp now) const;
  PublishOutcome make_room_and_append(const OfferedBatch& batch, Timestamp now);
  PublishOutcome outcome_of(log::AppendOutcome outcome, std::uint32_t records);
  PublishOutcome no_room_for(std::uint32_t records);
  bool drop_for(std::size_t bytes);
  void trim();
  [[nodiscard]] std::uint64_t already_gone(Offset next) const;
  [[nodiscard]] std::uint64_t queue_size() const;
  void count_progress(Offset next);

  TopicDefinition definition_;
  std::unique_ptr<log::Log> owned_log_;
  log::Log* const log_ = owned_log_.get();
  GroupSet groups_;
  std::vector<std::unique_ptr<Subscriber>> subscribers_;
  std::size_t attached_subscribers_ = 0;
  std::size_t first_subscriber_ = 0;  // to be pumped
  SteadyTime subscribers_timer_ = never;
  Offset furthest_;  // that a cursor other than the plain group's has come
  bool producers_held_ = false;
  bool held_by_disk_ = false;
  Timestamp disk_failed_;  // when it last did, while held_by_disk_

  Timestamp since_;
  std::uint64_t received_ = 0;
  std::uint64_t received_bytes_ = 0;
  std::uint64_t sent_to_group_ = 0;
  std::uint64_t sent_to_furthest_ = 0;
  std::uint64_t deliveries_ = 0;
  std::uint64_t delivered_bytes_ = 0;
  std::uint64_t rejected_ = 0;
  std::uint64_t refused_ = 0;
  std::uint64_t unclaimed_dropped_ = 0;
  DamageCount damage_;
};

}  // namespace lightq::broker
