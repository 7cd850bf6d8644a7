/// Layer: delivery.
#include "broker/delivery/topic.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace lightq::broker {

using protocol::BrokerType;
using protocol::Overflow;

namespace {
constexpr std::size_t pump_bytes_per_cursor = 256 * limits::KiB;
// After a disk failed: a try may be slow (room for a whole segment is asked for), and is made in vain.
constexpr std::int64_t disk_retry_interval_us = 500'000;
constexpr std::size_t batch_share_of_log = 4;  // a packed batch takes at most this fraction of a small log
}  // namespace

Topic::Topic(TopicDefinition definition, std::unique_ptr<log::Log> log, Timestamp since)
    : definition_(std::move(definition)),
      log_(std::move(log)),
      furthest_subscriber_(log_->next_offset()),
      since_(since) {}

bool Topic::accepting() const {
  return definition_.settings.broker_type != BrokerType::direct || pullers() > 0 || attached_subscribers_ > 0;
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

PublishOutcome Topic::publish(BatchBuilder& batch, Timestamp now) {
  assert(!batch.empty());
  if (held_by_disk_ && disk_failed_ <= now && now.us - disk_failed_.us < disk_retry_interval_us)
    return no_room_for(batch);
  const auto bytes = batch.finish();
  const auto result = log_->append(bytes, now);
  const auto outcome = result.outcome == log::AppendOutcome::full ? make_room_and_append(bytes, batch, now)
                                                                  : outcome_of(result.outcome, batch);
  if (held_by_disk_) disk_failed_ = now;
  if (outcome == PublishOutcome::accepted) {
    received_ += batch.record_count();
    received_bytes_ += batch.payload_bytes();
  }
  return outcome;
}

PublishOutcome Topic::outcome_of(log::AppendOutcome outcome, const BatchBuilder& batch) {
  switch (outcome) {
    case log::AppendOutcome::appended: held_by_disk_ = false; return PublishOutcome::accepted;
    case log::AppendOutcome::too_large: refused_ += batch.record_count(); return PublishOutcome::refused;
    case log::AppendOutcome::full: break;
    case log::AppendOutcome::no_space:
    case log::AppendOutcome::failed: held_by_disk_ = true; break;
  }
  return no_room_for(batch);
}

PublishOutcome Topic::no_room_for(const BatchBuilder& batch) {
  if (definition_.settings.overflow == Overflow::reject) {
    rejected_ += batch.record_count();
    return PublishOutcome::rejected;
  }
  return PublishOutcome::held;
}

PublishOutcome Topic::make_room_and_append(std::span<std::byte> bytes, const BatchBuilder& batch,
                                           Timestamp now) {
  held_by_disk_ = false;
  if (!drop_for(bytes.size())) return outcome_of(log::AppendOutcome::full, batch);
  return outcome_of(log_->append(bytes, now).outcome, batch);
}

bool Topic::group_holds() const {
  if (group_ == nullptr) return false;
  return definition_.settings.broker_type != BrokerType::direct || group_->consumers() > 0;
}

/// Drops the oldest messages that nobody holds (under `drop_oldest` also those that a group holds).
bool Topic::drop_for(std::size_t bytes) {
  const bool held = group_holds() && definition_.settings.overflow != Overflow::drop_oldest;
  const Offset limit = held ? group_->committed() : log_->next_offset();
  const Offset before = log_->first_offset();
  const bool fits = log_->make_room(bytes, limit);
  const Offset after = log_->first_offset();
  if (group_holds()) {
    const Offset lost_from = std::max(before, group_->next());
    if (lost_from < after) dropped_ += distance(lost_from, after);
    dropped_ += group_->returned_in(before, after);
  } else if (definition_.settings.broker_type != BrokerType::direct) {
    unclaimed_dropped_ += distance(before, after);
  }
  return fits;
}

std::string Topic::blocked_by() const {
  if (!producers_held_) return {};
  if (!accepting()) return "nobody connected";
  if (held_by_disk_) return "disk";
  return "group:" + std::string(protocol::default_group);
}

void Topic::open_group() {
  if (group_ != nullptr) return;
  const bool direct = definition_.settings.broker_type == BrokerType::direct;
  group_ = std::make_unique<PullGroup>(direct ? log_->next_offset() : log_->first_offset());
}

void Topic::restore_group(Offset offset) {
  group_ = std::make_unique<PullGroup>(std::min(offset, log_->next_offset()));
}

void Topic::delete_group() {
  assert(pullers() == 0);
  group_.reset();
}

void Topic::attach_puller(Outlet& outlet) {
  open_group();
  if (pullers() == 0) drop_unclaimed_direct();
  group_->attach(outlet);
}

void Topic::detach_puller(Outlet& outlet) {
  if (group_ == nullptr) return;
  group_->detach(outlet);
  if (pullers() == 0) drop_unclaimed_direct();
}

/// `direct` keeps nothing for late comers: what no puller had been handed when the last one left is gone.
void Topic::drop_unclaimed_direct() {
  if (definition_.settings.broker_type != BrokerType::direct) return;
  const Offset from = std::max(group_->committed(), log_->first_offset());
  dropped_ += distance(from, log_->next_offset());
  group_->skip_to(log_->next_offset());
  trim();
}

Subscriber& Topic::add_subscriber(std::optional<Offset> from) {
  const Offset next = log_->next_offset();
  subscribers_.push_back(std::make_unique<Subscriber>(std::min(from.value_or(next), next)));
  return *subscribers_.back();
}

void Topic::remove_subscriber(Subscriber& subscriber) {
  detach_subscriber(subscriber);
  std::erase_if(subscribers_, [&](const auto& owned) { return owned.get() == &subscriber; });
}

void Topic::attach_subscriber(Subscriber& subscriber, Outlet& outlet) {
  if (!subscriber.attached()) ++attached_subscribers_;
  if (definition_.settings.broker_type == BrokerType::direct) subscriber.skip_to(log_->next_offset());
  subscriber.attach(outlet);
}

void Topic::detach_subscriber(Subscriber& subscriber) {
  if (!subscriber.attached()) return;
  --attached_subscribers_;
  const auto delivered_before = subscriber.delivered();
  subscriber.detach();
  deliveries_ -= delivered_before - subscriber.delivered();
}

void Topic::pause_subscriber(Subscriber& subscriber) {
  if (!subscriber.attached()) return;
  --attached_subscribers_;
  subscriber.pause();
}

Topic::Pumped Topic::pump() {
  Pumped pumped;
  const Offset first = log_->first_offset();
  if (group_ != nullptr) {
    const WalkLoss before = group_->loss();
    const auto handed = group_->pump(*log_, pump_bytes_per_cursor);
    note_damage(before, group_->loss());
    sent_to_group_ += handed.messages;
    deliveries_ += handed.messages + handed.redelivered;
    delivered_bytes_ += handed.bytes;
    pumped.more |= handed.more;
    // Also what left since the last time makes room, though nothing new was handed out.
    const Offset committed = group_->committed();
    pumped.progress |= handed.messages > 0 || handed.redelivered > 0 || committed != committed_known_;
    committed_known_ = committed;
  }
  for (const auto& subscriber : subscribers_) {
    const WalkLoss before = subscriber->loss();
    const auto handed = subscriber->pump(*log_, pump_bytes_per_cursor);
    note_damage(before, subscriber->loss());
    deliveries_ += handed.messages;
    delivered_bytes_ += handed.bytes;
    pumped.more |= handed.more;
    if (handed.messages > 0) count_subscriber_progress(subscriber->next());
  }
  trim();
  pumped.progress |= log_->first_offset() != first;
  return pumped;
}

/// Counts damaged messages once, when the first cursor comes to them.
void Topic::note_damage(const WalkLoss& before, const WalkLoss& after) {
  if (after.damaged_end <= damage_known_to_) return;
  corrupt_ += after.damaged - before.damaged;
  damage_known_to_ = after.damaged_end;
}

void Topic::count_subscriber_progress(Offset next) {
  if (next <= furthest_subscriber_) return;
  sent_to_furthest_ += distance(furthest_subscriber_, next);
  furthest_subscriber_ = next;
}

/// Lets the log forget what every cursor has passed. A topic that no group has joined keeps all it can hold.
void Topic::trim() {
  const bool direct = definition_.settings.broker_type == BrokerType::direct;
  if (group_ == nullptr && !direct) return;
  Offset passed = group_holds() ? group_->committed() : log_->next_offset();
  for (const auto& subscriber : subscribers_) {
    if (direct && !subscriber->attached()) continue;
    passed = std::min(passed, subscriber->committed());
  }
  log_->trim(passed);
}

std::optional<Offset> Topic::group_committed() const {
  if (group_ == nullptr) return std::nullopt;
  return group_->committed();
}

/// Messages from `next` on that the log has moved past, though the one who stands there has not tried to read
/// them.
std::uint64_t Topic::already_gone(Offset next) const {
  const Offset first = log_->first_offset();
  return next < first ? distance(next, first) : 0;
}

std::uint64_t Topic::group_lost() const {
  return group_->loss().trimmed + already_gone(group_->next()) +
         group_->returned_in(Offset{0}, log_->first_offset());
}

Offset Topic::group_lag_start() const {
  return std::max(group_->next(), log_->first_offset());
}

std::uint64_t Topic::queue_size() const {
  const Offset next = log_->next_offset();
  if (group_ != nullptr) return distance(group_lag_start(), next);
  if (subscribers_.empty()) return distance(log_->first_offset(), next);
  Offset furthest = log_->first_offset();
  for (const auto& subscriber : subscribers_) furthest = std::max(furthest, subscriber->next());
  return distance(furthest, next);
}

protocol::TopicStats Topic::stats() const {
  protocol::TopicStats stats;
  stats.topic = definition_.name.text();
  stats.topic_type = definition_.settings.broker_type;
  stats.messages_received = received_;
  stats.messages_sent = group_ != nullptr ? sent_to_group_ : sent_to_furthest_;
  stats.subscribers_count = pullers() + attached_subscribers_;
  stats.queue_size = queue_size();
  stats.total_bytes_written = received_bytes_;
  stats.total_bytes_read = delivered_bytes_;
  stats.deliveries = deliveries_;
  stats.dropped = dropped_;
  stats.rejected = rejected_;
  stats.refused = refused_;
  stats.unclaimed_dropped = unclaimed_dropped_;
  stats.first_offset = log_->first_offset().value;
  stats.next_offset = log_->next_offset().value;
  stats.durable_offset = log_->durable_offset().value;
  stats.log_bytes = log_->stored_bytes();
  stats.blocked_by = blocked_by();
  stats.settings = definition_.settings;
  stats.since_ms = static_cast<std::uint64_t>(since_.us / 1000);
  stats.corrupt = corrupt_;
  if (group_ != nullptr) {
    stats.groups.push_back({std::string(protocol::default_group), group_->next().value,
                            group_->committed().value, distance(group_lag_start(), log_->next_offset()),
                            group_lost(), group_->consumers()});
  }
  return stats;
}

protocol::SubscriberStats Topic::subscriber_stats(const Subscriber& subscriber) const {
  protocol::SubscriberStats stats;
  stats.connected = subscriber.attached();
  stats.next_offset = subscriber.next().value;
  stats.lag = distance(std::max(subscriber.next(), log_->first_offset()), log_->next_offset());
  stats.delivered = subscriber.delivered();
  stats.lost = subscriber.lost() + already_gone(subscriber.next());
  return stats;
}

}  // namespace lightq::broker
