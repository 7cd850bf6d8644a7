/// A topic at work: publishing, dispatch, the store's reports and the clean stop. Layer: topic.
#include "topic/topic_runtime.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <lightq/base/fetch_ahead.hpp>

#include "log/elapsed.hpp"

namespace lightq::broker {

namespace {

constexpr std::uint64_t ticks_per_second = 10;
// The topic's own user as the owner of cursors, and in the producers' file.
constexpr std::uint64_t topics_own_user = FairShare::anonymous - 1;
// Long enough for a ring to notice that it is idle and to release its memory.
constexpr std::int64_t ticks_after_activity_us = 15'000'000;

}  // namespace

TopicRuntime::TopicRuntime(ReactorContext& context, Ticker& ticker, TopicDefinition definition,
                           std::unique_ptr<TopicStore> store, FoundTopic found)
    : context_(context),
      ticker_(ticker),
      held_store_(std::move(store)),
      known_producers_(std::move(found.producers)),
      topic_(std::move(definition), *held_store_.store, context.now(), context.settings.groups,
             &context.ranges),
      endpoints_(context, topic_, *this, *this),
      producers_(*known_producers_, context.now),
      consumers_(topic_, held_store_.store->is_durable(), context_.settings.limits_reached),
      batch_bytes_target_(topic_.batch_bytes_target()),
      last_active_(context.now()),
      saved_cursors_(found.stored),
      cursors_kept_(found.was_closed()),
      purged_(found.stored_cursor(purged_cursor_name)),
      found_cursors_(std::move(found.stored)),
      lives_(std::move(found.lives)) {
  held_store_.store->report_to(*this);
  topic_.groups().restore(found_cursors_);
  hurry_producers();
}

TopicRuntime::~TopicRuntime() {
  context_.loop.cancel_soon(*this);
  context_.loop.cancel(retention_timer_);
  context_.loop.cancel(group_timer_);
}

Result<void> TopicRuntime::reopen(const EndpointRecord& record) {
  return endpoints_.reopen(
      record, log::offset_of_cursor(found_cursors_, EndpointSet::subscriber_cursor_name(record.id)));
}

protocol::TopicStats TopicRuntime::stats() {
  topic_.groups().give_up_dropped();  // so that no request walks over dropped messages
  auto stats = topic_.stats(context_.now());
  endpoints_.add_stats(stats);
  stats.open_by_broker = context_.settings.open_topics;
  stats.open = stats.settings.open || stats.open_by_broker;
  stats.publishers_count += producers_.connected();
  stats.subscribers_count += consumers_.connected();
  return stats;
}

PublishOutcome TopicRuntime::publish(BatchBuilder& batch) {
  last_active_ = context_.call_clock.now();
  return report(topic_.publish(batch, last_active_), batch.size_bytes());
}

/// Returns the owner under which producers and cursors of `user` are kept. The topic's own user gets another
/// id with each password, but keeps its producers and cursors.
std::uint64_t TopicRuntime::owner_for(std::uint64_t user) const {
  return context_.access.is_topics_own(user, definition().id) ? topics_own_user : user;
}

/// Returns true if the owner of a cursor was deleted. Any user may then take the cursor over.
bool TopicRuntime::is_gone(std::uint64_t owner) const {
  if (owner == 0 || owner == FairShare::anonymous) return false;
  if (owner == topics_own_user) return !context_.access.has_own_user(definition().id);
  return !context_.access.has_user(owner);
}

ProducerTable::Opened TopicRuntime::open_producer(ProducerIdentity wanted, SessionProducer& producer,
                                                  ProducerTable::Opener opener) {
  opener.user = owner_for(opener.user);
  const auto opened = producers_.open(wanted, producer, opener);
  context_.loop.call_soon(*this);  // to save and admit a new producer
  return opened;
}

TopicConsumers::Refusal TopicRuntime::open_consumer(const ConsumeRequest& asked, SessionConsumer& consumer,
                                                    std::uint64_t user) {
  if (stopping_) return {ClientError::shutting_down};
  const auto former = topic_.groups().owner_of(asked.group);
  if (former && is_gone(*former)) topic_.groups().disown(asked.group);
  const auto refusal = consumers_.open(asked, consumer, lives_, user, owner_for(user));
  if (refusal.code == ClientError::none) session_consumers_changed();
  return refusal;
}

void TopicRuntime::detach_consumer(SessionConsumer& consumer) {
  consumers_.detach(consumer);
  session_consumers_changed();
}

/// Calls no consumer or producer within this call: waiting producers, too, resume in a later turn of the
/// loop.
void TopicRuntime::session_consumers_changed() {
  resume_soon_ = true;
  want_dispatch();
}

bool TopicRuntime::add_credit(SessionConsumer& consumer, const Credit& credit) {
  want_dispatch();
  return consumers_.add_credit(consumer, credit);
}

void TopicRuntime::acknowledge(SessionConsumer& consumer, const Ack& acknowledged) {
  consumers_.acknowledge(consumer, acknowledged);
  want_dispatch();
}

void TopicRuntime::reject(SessionConsumer& consumer, const Rejection& rejected) {
  consumers_.reject(consumer, rejected, EventLoop::Clock::now());
  want_dispatch();
}

void TopicRuntime::extend(SessionConsumer& consumer, const Extension& extended) {
  consumers_.extend(consumer, extended, EventLoop::Clock::now());
  want_dispatch();
}

Result<Offset> TopicRuntime::seek(SessionConsumer& consumer, StartPosition to) {
  const auto next = consumers_.seek(consumer, to);
  want_dispatch();
  return next;
}

void TopicRuntime::consumer_writable(SessionConsumer& consumer) {
  consumers_.wake(consumer);
  want_dispatch();
}

void TopicRuntime::want_dispatch() {
  context_.loop.call_soon(*this);
}

DeliveryContext TopicRuntime::begin_read() {
  last_active_ = context_.now();
  want_ticks();  // memory that is kept for reading is released after a while without reads
  return {.now = context_.loop.call_time(), .wall = last_active_};
}

PublishOutcome TopicRuntime::store(const OfferedBatch& batch, const Sequences& sequences) {
  last_active_ = context_.call_clock.now();
  const auto outcome = topic_.publish(batch, last_active_);
  if (outcome == PublishOutcome::accepted) known_producers_->stored(sequences, last_active_);
  return report(outcome, batch.bytes.size());
}

void TopicRuntime::fetch_ahead_fields() const {
  fetch_ahead_up_to(this, topic_.hot_end());
  lightq::fetch_ahead_hot(producers_);
  fetch_ahead(&consumers_);
  fetch_ahead_up_to(&stopping_, &purged_);
}

void TopicRuntime::fetch_ahead_for_input(unsigned step) const {
  if (step == 0) {
    fetch_ahead(known_producers_.get());
    consumers_.fetch_ahead_first();
  }
  if (step == 1) known_producers_->fetch_ahead_newest();
  topic_.fetch_ahead_for_input(step);
}

std::uint64_t TopicRuntime::batch_bytes_max() const {
  const auto& settings = definition().settings;
  std::uint64_t most = UINT32_MAX;
  if (settings.broker_type != protocol::BrokerType::file) most = std::min(most, settings.ring_bytes);
  if (settings.broker_type != protocol::BrokerType::queue && settings.capacity_bytes > 0)
    most = std::min(most, settings.capacity_bytes);
  return most;
}

/// Called after each append. Logs when appends begin to fail and when they work again. Counts the bytes that
/// a start has to read to know the producers.
PublishOutcome TopicRuntime::report(PublishOutcome outcome, std::uint64_t bytes) {
  if (outcome == PublishOutcome::accepted) known_producers_->appended(bytes);
  if (outcome != PublishOutcome::accepted && topic_.held_by_disk() && !std::exchange(warned_of_disk_, true)) {
    const char* what = outcome == PublishOutcome::held ? "producers wait" : "messages are rejected";
    context_.sink.error("topic " + definition().name.text() + ": " + what +
                        ", because the log cannot be written: " + topic_.log().last_error().text());
  }
  if (outcome == PublishOutcome::accepted && std::exchange(warned_of_disk_, false)) {
    context_.sink.info("topic " + definition().name.text() + ": the log can be written again");
  }
  return outcome;
}

void TopicRuntime::inlet_held() {
  held_ = true;
  topic_.set_producers_held(true);
  want_ticks();
}

void TopicRuntime::resume_held() {
  if (!held_) return;
  const bool inlets = endpoints_.resume_inlets();
  held_ = !producers_.resume() || !inlets;
  topic_.set_producers_held(held_);
  context_.loop.call_soon(*this);  // dispatches the messages that they published
}

void TopicRuntime::consumers_changed() {
  resume_held();  // a `direct` topic accepts messages only while a consumer is connected
  context_.loop.call_soon(*this);
  want_ticks();
}

void TopicRuntime::begin_stop(ClientError why) {
  stopping_ = true;
  call_read_waiters();
  end_commands(why);
  producers_.end(why, why == ClientError::topic_deleted ? "the topic is deleted" : "the broker is stopping");
  consumers_.end(why, why == ClientError::topic_deleted ? "the topic is deleted" : "the broker is stopping");
  endpoints_.stop_accepting();
}

void TopicRuntime::dispatch() {
  last_active_ = context_.now();
  published();
}

/// Passes the current wall time to delivery. The other work uses last_active_, the time of the last
/// publication, read or dispatch, which is precise enough for it.
void TopicRuntime::published() {
  if (stopping_) return;
  const auto result =
      consumers_.dispatch({.now = context_.loop.call_time(), .wall = context_.call_clock.now()});
  if (result.more) context_.loop.call_soon(*this);
  if (std::exchange(resume_soon_, false) || result.progress) resume_held();
  if (store().write_behind(last_active_)) context_.loop.call_soon(*this);
  hurry_producers();
  save_producers(last_active_);
  start_work(last_active_);
  if (cursors_awaited()) save_cursors(last_active_);
  arm_group_timer();
  want_ticks();
}

/// Sets a timer for the next dispatch. It handles messages that were not acknowledged in time, were rejected
/// with a delay, or were unavailable.
void TopicRuntime::arm_group_timer() {
  const SteadyTime next = topic_.next_timer();
  if (next >= group_timer_at_) return;
  context_.loop.cancel(group_timer_);
  group_timer_at_ = next;
  group_timer_ = context_.loop.at(next, [this] {
    group_timer_at_ = never;
    dispatch();
  });
}

void TopicRuntime::want_ticks() {
  if (std::exchange(ticking_, true)) return;
  ticker_.tick_wanted(*this);
}

bool TopicRuntime::tick() {
  if (stopping_) return ticking_ = false;
  const Timestamp now = context_.now();
  if (store().maintain(now)) context_.loop.call_soon(*this);
  resume_held();
  if (held_) endpoints_.tend_held(++ticks_ % ticks_per_second == 0);
  hurry_producers();
  try_purges_again();
  save_producers(now);
  start_work(now);
  save_cursors(now);
  report_losses(now);
  report_unavailable();
  ticking_ = held_ || !purges_again_.empty() || known_producers_->wants_save() || cursors_failed_ ||
             store().wants_work() || !log::has_passed(last_active_, ticks_after_activity_us, now);
  if (!ticking_) {
    endpoints_.release_idle_memory();
    arm_retention();
  }
  return ticking_;
}

/// Sets a timer for a tick, so that old messages are removed even if nothing else happens.
void TopicRuntime::arm_retention() {
  const auto retention_ms = definition().settings.retention_ms;
  if (retention_ms == 0 || topic_.log().stored_bytes() == 0) return;
  const auto wait = std::chrono::milliseconds(std::clamp<std::uint64_t>(retention_ms / 4, 1'000, 60'000));
  context_.loop.cancel(retention_timer_);
  retention_timer_ = context_.loop.at(EventLoop::Clock::now() + wait, [this] { want_ticks(); });
}

void TopicRuntime::start_work(Timestamp now) {
  if (const auto end = known_producers_->wants_flush(LogEnds::of(store()))) store().request_flush(*end);
  store().start_work(now);
}

void TopicRuntime::on_durable() {
  if (stopping_) return;
  const Offset durable = durable_offset();
  if (std::exchange(durable_known_, durable) != durable) producers_.durable_moved();
  const Timestamp now = context_.now();
  save_producers(now);  // a snapshot may have waited until the log was durable
  start_work(now);      // for a flush that was requested meanwhile
}

void TopicRuntime::on_saved(StoredState what, const Result<void>& result) {
  what == StoredState::consumers ? cursors_saved(result) : producers_saved(result);
  if (stopping_) return;
  const Timestamp now = context_.now();
  save_producers(now);
  start_work(now);
}

void TopicRuntime::on_readable() {
  call_read_waiters();
  want_dispatch();
}

void TopicRuntime::call_read_waiters() {
  for (ReadWaiter* const waiter : std::exchange(read_waiters_, {})) waiter->readable();
}

/// Logs when writing begins to fail and when it works again.
void TopicRuntime::on_health() {
  const std::string where = "topic " + definition().name.text() + ": ";
  const Error* const fault = store().write_fault();
  if (fault == nullptr) return context_.sink.info(where + "its messages are written to the disk again");
  context_.sink.error(where +
                      "its messages stay in memory, because the disk cannot be written: " + fault->text());
}

void TopicRuntime::save_producers(Timestamp now) {
  admit_producers();
  auto snapshot = known_producers_->take_save(LogEnds::of(store()), now);
  if (snapshot) store().save_producers(std::move(snapshot->slot));
}

/// Admits producers after their ids are saved. If the disk fails, ends the producers that wait to be
/// admitted, or for their batches to become durable.
void TopicRuntime::admit_producers() {
  const Error* const sync_fault = store().sync_fault();
  if (sync_fault != nullptr) {
    if (!std::exchange(told_of_failed_sync_, true))
      context_.sink.error("topic " + definition().name.text() + ": " + sync_fault->text());
    producers_.end_needing_durable(ClientError::io_error,
                                   "the disk has failed: no further message becomes durable");
  }
  producers_.admit_settled();
  if (sync_fault != nullptr) {
    producers_.end_waiting(ClientError::io_error, "the disk has failed: no further message becomes durable");
    end_purges(*sync_fault);
  } else if (const Error* const write_fault = store().write_fault()) {
    end_waiting_producers(*write_fault);
  }
}

void TopicRuntime::end_waiting_producers(const Error& error) {
  end_purges(error);
  if (error.code == ErrorCode::no_space)
    return producers_.end_waiting(ClientError::no_space, "the disk is full");
  producers_.end_waiting(ClientError::io_error, "the disk cannot be written");
}

void TopicRuntime::producers_saved(const Result<void>& result) {
  known_producers_->saved(result.ok());
  producers_lack_space_ = !result && result.error().code == ErrorCode::no_space;
  hurry_producers();  // files that waited for the save may be deleted
  if (!stopping_) want_ticks();
  if (!result) end_waiting_producers(result.error());
  settle_purges();
  const bool failed_before = std::exchange(producers_failed_, !result.ok());
  if (!result && !failed_before)
    context_.sink.error("topic " + definition().name.text() +
                        ": cannot save its producers: " + result.error().text());
}

/// Writes nothing if nothing has changed. Closes the log last: its mark also states that the cursors are on
/// disk.
void TopicRuntime::flush_for_stop() {
  const std::string where = "topic " + definition().name.text() + ": ";
  auto flushed = store().flush();
  if (auto last = known_producers_->take_last_save(LogEnds::of(store())))
    producers_saved(store().save_producers_now(std::move(last->slot)));
  auto current = cursors(std::numeric_limits<std::size_t>::max());
  Result<void> kept;
  if (store().is_durable() && (!cursors_kept_ || current != saved_cursors_))
    kept = store().save_consumers_now(current);
  if (!kept) context_.sink.error(where + "cannot save its cursors: " + kept.error().text());
  if (flushed && kept) flushed = store().close();
  if (!flushed) context_.sink.error(where + "cannot flush its log: " + flushed.error().text());
}

}  // namespace lightq::broker
