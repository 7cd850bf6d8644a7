/// Publishing, dispatch and statistics of a topic. Layer: delivery.
#include "delivery/topic.hpp"
#include "delivery/state/set_merge.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <lightq/base/fetch_ahead.hpp>
#include <lightq/base/limits.hpp>

namespace lightq::broker {

using protocol::BrokerType;
using protocol::Overflow;

namespace {
// Wait after a disk failure. An attempt may be slow, because it allocates a whole segment, and it would
// mostly fail again.
constexpr std::int64_t disk_retry_interval_us = 500'000;
constexpr std::size_t batch_share_of_log = 4;  // a packed batch takes at most this fraction of a small log

/// Returns the capacity that a topic's log and its delayed messages have together.
std::uint64_t shared_capacity(const protocol::TopicSettings& settings) {
  return settings.broker_type == BrokerType::queue ? settings.ring_bytes : settings.capacity_bytes;
}
bool was_just_now(Timestamp failed, Timestamp now) {
  return failed <= now && now.us - failed.us < disk_retry_interval_us;
}

/// The room that a batch needs.
struct Room {
  log::BatchLog& log;
  const DelayedShare& delayed;
  RoomIn needed;
  std::size_t bytes;

  /// Drops the oldest messages before `limit`, as few as necessary. Returns true if there is room now.
  [[nodiscard]] bool make_before(Offset limit) const {
    // Delayed messages take no place in the log. So the log makes place for the batch alone.
    if (needed == RoomIn::log && !log.make_room(bytes, limit)) return false;
    while (!delayed.leaves(needed, log.stored_bytes(), bytes)) {
      if (!log.drop_first(limit, bytes)) return false;
    }
    return true;
  }
};

/// Tells the groups which messages have expired since the last call.
void note_fresh(ExpiryIndex& expiry, ConsumerGroups& groups) {
  if (!expiry.has_fresh()) return;
  const log::OffsetSet fresh = expiry.take_fresh();
  groups.for_each([&](ConsumerGroup& group) {
    GroupMessages& messages = group.messages();
    const DeadMessages* const dead = messages.redelivery().dead();
    const bool any_waits = !messages.redelivery().waiting().empty();
    messages.expiry().note(dead == nullptr ? fresh : without(fresh, dead->protected_messages()), any_waits);
  });
}

/// Ends messages that wait in groups, have expired, and are before `first`, where the log begins now. So they
/// do not count as lost.
void end_expired_before(Offset first, ExpiryIndex& expiry, ConsumerGroups& groups) {
  note_fresh(expiry, groups);
  groups.for_each([&](ConsumerGroup& group) { group.dead().end_expired_before(first); });
}

}  // namespace

Topic::Topic(TopicDefinition definition, log::BatchLog& log, Timestamp since, const GroupLimits& group_limits,
             RangeBudget* budget)
    : log_(&log),
      log_hot_part_(log_->hot_part()),
      direct_(definition.settings.broker_type == BrokerType::direct),
      delayed_(shared_capacity(definition.settings)),
      subscribers_(*log_, direct_),
      furthest_(log_->next_offset()),
      expiry_(*log_),
      groups_(*log_, direct_, group_limits, budget),
      definition_(std::move(definition)),
      since_(since),
      carry_over_(*log_, groups_, damage_, definition_.settings) {
  set_paused(definition_.paused);
  expiry_.set_ttl(definition_.settings.message_ttl_ms);
}

void Topic::change(const protocol::TopicChange& change) {
  definition_.settings = change.applied_to(definition_.settings);
  if (change.message_ttl_ms) expiry_.set_ttl(*change.message_ttl_ms);
  delayed_.set_capacity(shared_capacity(definition_.settings));
  carry_over_.set_settings(definition_.settings);
}

bool Topic::accepting() const {
  return !direct_ || consumers() > 0;
}

std::size_t Topic::batch_bytes_target() const {
  const auto& settings = definition_.settings;
  std::uint64_t smallest = limits::batch_bytes_target * batch_share_of_log;
  if (settings.broker_type != BrokerType::file) smallest = std::min(smallest, settings.ring_bytes);
  if (settings.broker_type != BrokerType::queue && settings.capacity_bytes > 0) {
    smallest = std::min(smallest, settings.capacity_bytes);
  }
  return static_cast<std::size_t>(smallest / batch_share_of_log);
}

void Topic::fetch_ahead_for_input(unsigned step) const {
  if (step == 0) {
    fetch_ahead(log_);
    fetch_ahead(log_hot_part_, 320);
  } else {
    log_->fetch_ahead_for_append(step - 1);
  }
  groups_.fetch_ahead_for_input(step);
}

PublishOutcome Topic::publish(BatchBuilder& batch, Timestamp now) {
  assert(!batch.empty());
  if (held_by_disk_ && was_just_now(disk_failed_, now))
    return counted(outcome_of(log::AppendOutcome::full), batch.record_count());
  return publish(OfferedBatch{batch.finish(), batch.record_count(), batch.message_bytes()}, now);
}

PublishOutcome Topic::publish(const OfferedBatch& batch, Timestamp now) {
  return counted(offer(batch, now), batch.records);
}

PublishOutcome Topic::offer(const OfferedBatch& batch, Timestamp now) {
  if (held_by_disk_ && was_just_now(disk_failed_, now)) return outcome_of(log::AppendOutcome::full);
  const std::size_t bytes = batch.bytes.size();
  const bool is_full = delayed_.bytes() != 0 && !delayed_.leaves_log(log_->stored_bytes(), bytes);
  auto appended = is_full ? log::AppendOutcome::full : log_->append(batch.bytes, now).outcome;
  if (appended == log::AppendOutcome::full) {
    held_by_disk_ = false;
    if (drop_for(bytes, RoomIn::log)) appended = log_->append(batch.bytes, now).outcome;
  }
  const PublishOutcome outcome = outcome_of(appended);
  if (held_by_disk_) disk_failed_ = now;
  if (outcome == PublishOutcome::accepted) {
    received_ += batch.records;
    received_bytes_ += batch.payload_bytes;
    expiry_.appended(batch.bytes.data(), batch.ttl, batch.uniform_ttl_ms);
  }
  return outcome;
}

PublishOutcome Topic::outcome_of(log::AppendOutcome outcome) {
  switch (outcome) {
    case log::AppendOutcome::appended: held_by_disk_ = false; return PublishOutcome::accepted;
    case log::AppendOutcome::too_large: return PublishOutcome::refused;
    case log::AppendOutcome::full: break;
    case log::AppendOutcome::no_space:
    case log::AppendOutcome::failed: held_by_disk_ = true; break;
  }
  const bool rejects = definition_.settings.overflow == Overflow::reject && !carry_over_.has_more();
  return rejects ? PublishOutcome::rejected : PublishOutcome::held;
}

/// Drops the oldest messages that no group holds; those that wait are carried over if they are few, a limited
/// number in each call. Under `drop_oldest` also drops messages that a group holds. Drops nothing if `bytes`
/// would not fit all the same. Returns true if they fit now.
bool Topic::drop_for(std::size_t bytes, RoomIn needed) {
  delayed_leave_too_little_ = !delayed_.leaves(needed, 0, bytes);
  if (delayed_leave_too_little_) return false;
  const bool dropping = definition_.settings.overflow == Overflow::drop_oldest;
  const ConsumerGroup* const holder = dropping ? nullptr : groups_.slowest_holder();
  const Offset before = log_->first_offset();
  const Room room{*log_, delayed_, needed, bytes};
  bool fits = room.make_before(holder != nullptr ? needed_from(*holder, *log_) : log_->next_offset());
  if (!fits && holder != nullptr) {
    if (const auto limit = carry_over_.carry_oldest()) {
      log_->trim(subscribers_.passed_up_to(*limit));
      fits = room.make_before(*limit);
    }
  }
  const Offset after = log_->first_offset();
  if (ExpiryIndex* const expiry = expiry_.index(); expiry != nullptr && before < after) [[unlikely]]
    end_expired_before(after, *expiry, groups_);
  if (!groups_.count_dropped({before, after}) && !direct_) unclaimed_dropped_ += distance(before, after);
  if (before < after) groups_.give_up_dropped(false);
  return fits;
}

void note_dropped(Topic& topic) {
  const Offset first = topic.log().first_offset();
  ExpiryIndex* const expiry = topic.expiry().index();
  if (expiry != nullptr && expiry->forgotten_before() < first) [[unlikely]]
    end_expired_before(first, *expiry, topic.groups());
  topic.groups().give_up_dropped(false);
}

bool Topic::make_room(std::uint64_t bytes) {
  return delayed_.leaves_room(log_->stored_bytes(), bytes) || drop_for(bytes, RoomIn::schedule);
}

std::string Topic::blocked_by() const {
  if (!producers_held_ && !delayed_.holds_producers()) return {};
  if (!accepting()) return "nobody connected";
  if (held_by_disk_) return "disk";
  if (delayed_leave_too_little_) return "delayed";
  const ConsumerGroup* const holder = groups_.slowest_holder();
  return holder != nullptr ? "group:" + holder->name() : std::string();
}

void Topic::attach_puller(RecordSink& consumer) {
  groups_.attach(consumer);
  trim();
}

void Topic::detach_puller(RecordSink& consumer) {
  groups_.detach(consumer);
  trim();
}

void Topic::set_paused(bool paused) {
  definition_.paused = paused;
  groups_.set_paused(paused);
  subscribers_.set_paused(paused);
}

std::uint64_t Topic::finish_all() {
  const Offset next = log_->next_offset();
  groups_.for_each([next](ConsumerGroup& group) { group.seek(next, RevokeCause::purge); });
  subscribers_.finish_all();
  furthest_ = std::max(furthest_, next);
  return distance(log_->first_offset(), next);
}

namespace {

/// Moves a group's position up to `first`, the log's first offset, so that expired messages before it do not
/// count as lost. Messages that were carried over become ready, as if they had been delivered and released.
void pass_dropped(ConsumerGroup& group, Offset first, const log::OffsetSet* carried) {
  GroupMessages& messages = group.messages();
  const OffsetRange range{messages.next(), first};
  if (range.end <= range.begin) return;
  const DropCounts dropped = messages.expiry().dropped(range, carried);
  CountedRanges there;
  for (auto run = dropped.there == 0 ? std::nullopt : carried->first_behind(range.begin);
       run && run->begin < first; run = carried->first_behind(run->end))
    there.push_back({{std::max(run->begin, range.begin), std::min(run->end, first)}, 0});
  messages.reader().pass_dropped(first, dropped);
  if (there.empty()) return;
  messages.redelivery().change_waiting(
      [&](WaitingMessages& waiting) { waiting.give_up_before(first, *carried, first); });
  group.dead().revive(there);
}

/// Finds the messages that have expired, and passes them on. Returns true if there may be more at once.
bool tend_expiry(ExpiryIndex& expiry, log::BatchLog& log, ConsumerGroups& groups, Subscribers& subscribers,
                 const DeliveryContext& context) {
  const Offset first = log.first_offset();
  groups.for_each([&](ConsumerGroup& group) { group.messages().expiry().set_index(&expiry); });
  subscribers.set_expiry(&expiry);
  if (expiry.forgotten_before() < first) {
    const log::OffsetSet* const carried = carried_offsets(log);
    end_expired_before(first, expiry, groups);
    if (expiry.expired().count_in({expiry.forgotten_before(), first}) != 0) {
      groups.for_each([&](ConsumerGroup& group) { pass_dropped(group, first, carried); });
      subscribers.pass_dropped(first, carried);
    }
    expiry.forget_before(subscribers.passed_up_to(first));
  }
  const bool more = expiry.tend(context.wall, context.now);
  note_fresh(expiry, groups);
  if (!expiry.expired().empty()) subscribers.pass_expired();
  return more;
}

/// Drops the index if nothing can expire any more.
void drop_if_over(TopicExpiry& expiry, ConsumerGroups& groups, Subscribers& subscribers) {
  if (!expiry.is_over()) return;
  groups.for_each([](ConsumerGroup& group) { group.messages().expiry().set_index(nullptr); });
  subscribers.set_expiry(nullptr);
  expiry.drop();
}

}  // namespace

Topic::DispatchResult Topic::dispatch(const DeliveryContext& asked) {
  DispatchResult result;
  const Offset first = log_->first_offset();
  DeliveryContext context = asked;
  if (ExpiryIndex* const index = expiry_.index(); index != nullptr) [[unlikely]] {
    result.more = tend_expiry(*index, *log_, groups_, subscribers_, context);
    context.expiry = index;
  }
  const auto from_groups = groups_.dispatch(context, damage_);
  sent_to_group_ += from_groups.to_plain_group;
  deliveries_to_groups_ += from_groups.deliveries;
  const auto to_subscribers = subscribers_.dispatch(context, damage_);
  delivered_bytes_ += from_groups.bytes + to_subscribers.bytes;
  const Offset furthest = std::max(from_groups.furthest_of_others, to_subscribers.furthest);
  if (furthest_ < furthest) {
    sent_to_furthest_ += distance(furthest_, furthest);
    furthest_ = furthest;
  }
  result.more |= from_groups.more || to_subscribers.more;
  result.progress = from_groups.progress;
  result.held_back = from_groups.held_back;
  result.dead_waiting = from_groups.dead_waiting;
  trim();
  const bool carries_more = carry_over_.take_more();
  result.progress |= carries_more || log_->first_offset() != first;
  if (context.expiry != nullptr) [[unlikely]] {
    result.more |= context.expiry->has_fresh();
    drop_if_over(expiry_, groups_, subscribers_);
  }
  return result;
}

/// Lets the log drop the messages that every cursor has passed. A topic that no group has joined keeps all it
/// can.
void Topic::trim() {
  const auto passed_by_groups = groups_.passed();
  if (!passed_by_groups) return;
  log_->trim(subscribers_.passed_up_to(*passed_by_groups));
}

const Error* Topic::unavailable() const {
  const Error* const why = groups_.unavailable();
  return why != nullptr ? why : subscribers_.unavailable();
}

std::uint64_t Topic::queue_size() const {
  const Offset next = log_->next_offset();
  const Offset first = log_->first_offset();
  if (const ConsumerGroup* const plain = groups_.plain(); plain != nullptr)
    return plain->messages().ready(first, next) + plain->messages().retrying();
  const OffsetRange ahead{std::max({first, groups_.furthest_of_others(), subscribers_.furthest()}), next};
  return distance(ahead.begin, next) -
         (expiry_.index() == nullptr ? 0 : expiry_.index()->expired().count_in(ahead));
}

TopicFlow Topic::flow() const {
  TopicFlow flow{.in = received_, .out = deliveries_to_groups_ + subscribers_.deliveries()};
  const Offset first = log_->first_offset();
  const Offset next = log_->next_offset();
  for (const ConsumerGroup* const group : groups_.list(ConsumerGroups::Listed::all)) {
    const GroupMessages& messages = group->messages();
    const std::uint64_t lag = messages.ready(first, next) + messages.retrying();
    flow.lag = std::max(flow.lag, lag);
    flow.pending += lag + messages.in_flight() + messages.parked() + messages.dead_waiting();
  }
  return flow;
}

protocol::TopicStats Topic::stats(Timestamp now, SteadyTime steady, std::uint64_t members_max) const {
  protocol::TopicStats stats;
  stats.topic = definition_.name.text();
  stats.topic_type = definition_.settings.broker_type;
  stats.messages_received = received_;
  stats.messages_sent = groups_.plain() != nullptr ? sent_to_group_ : sent_to_furthest_;
  stats.subscribers_count = consumers();
  stats.queue_size = queue_size();
  stats.total_bytes_written = received_bytes_;
  stats.total_bytes_read = delivered_bytes_;
  stats.deliveries = deliveries_to_groups_ + subscribers_.deliveries();
  stats.dropped = groups_.dropped();
  stats.rejected = rejected_;
  stats.refused = refused_;
  stats.unclaimed_dropped = unclaimed_dropped_;
  stats.first_offset = log_->first_offset().value;
  stats.next_offset = log_->next_offset().value;
  stats.durable_offset = log_->durable_offset().value;
  stats.log_bytes = log_->held_bytes();
  if (const log::CarriedRecords* const carried = log_->carried()) {
    stats.carried_messages = carried->offsets().size();
    stats.carried_bytes = carried->bytes();
  }
  stats.blocked_by = blocked_by();
  stats.paused = definition_.paused;
  stats.settings = definition_.settings;
  stats.since_ms = static_cast<std::uint64_t>(since_.us / 1000);
  stats.corrupt = damage_.messages();
  stats.groups = groups_.stats({steady, now}, members_max);
  return stats;
}

}  // namespace lightq::broker
