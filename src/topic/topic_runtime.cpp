/// A topic at work: publishing, dispatch, disk jobs and the clean stop. Layer: topic.
#include "topic/topic_runtime.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include <lightq/base/fetch_ahead.hpp>
#include <lightq/base/random.hpp>

#include "log/elapsed.hpp"

namespace lightq::broker {

namespace {

constexpr std::uint64_t ticks_per_second = 10;
// The topic's own user as the owner of cursors, and in the producers' file.
constexpr std::uint64_t topics_own_user = FairShare::strangers - 1;
constexpr std::int64_t write_again_interval_us = 1'000'000;
// Long enough for a ring to notice that it is idle and to release its memory.
constexpr std::int64_t ticks_after_activity_us = 15'000'000;

}  // namespace

TopicRuntime::TopicRuntime(ReactorContext& context, Ticker& ticker, TopicDefinition definition,
                           TopicStorage storage)
    : context_(context),
      ticker_(ticker),
      held_storage_{std::make_unique<TopicStorage>(std::move(storage)), {}},
      topic_(std::move(definition), std::move(storage_.log), context.now(), context.settings.groups,
             &context.ranges),
      endpoints_(context, topic_, *this, *this),
      producers_(*storage_.producers, context.now),
      consumers_(topic_, storage_.keeps_cursors(), context_.settings.limits_reached),
      batch_bytes_target_(topic_.batch_bytes_target()),
      last_active_(context.now()) {
  restore_groups();
  hurry_producers();
}

void TopicRuntime::restore_groups() {
  topic_.groups().restore(storage_.stored);
  purged_ = storage_.stored_cursor(purged_cursor_name);
  saved_cursors_ = storage_.stored;
  cursors_kept_ = storage_.was_closed();
}

TopicRuntime::~TopicRuntime() {
  context_.loop.cancel_soon(*this);
  context_.loop.cancel(retention_timer_);
  context_.loop.cancel(group_timer_);
  storage_.log = topic_.release_log();  // is destroyed last
}

Result<void> TopicRuntime::reopen(const EndpointRecord& record) {
  return endpoints_.reopen(record, storage_.stored_cursor(EndpointSet::subscriber_cursor_name(record.id)));
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
  if (owner == 0 || owner == FairShare::strangers) return false;
  if (owner == topics_own_user) return !context_.access.has_own_user(definition().id);
  return !context_.access.has_user(owner);
}

ProducerTable::Opened TopicRuntime::open_producer(session::ProducerIdentity wanted, SessionProducer& producer,
                                                  ProducerTable::Opener opener) {
  opener.user = owner_for(opener.user);
  const auto opened = producers_.open(wanted, producer, opener);
  context_.loop.call_soon(*this);  // to save and admit a new producer
  return opened;
}

TopicConsumers::Refusal TopicRuntime::open_consumer(const session::ConsumeOpen& asked,
                                                    SessionConsumer& consumer, std::uint64_t user) {
  if (stopping_) return {session::Code::shutting_down};
  const auto former = topic_.groups().owner_of(asked.group);
  if (former && is_gone(*former)) topic_.groups().disown(asked.group);
  const auto refusal = consumers_.open(asked, consumer, storage_.lives, user, owner_for(user));
  if (refusal.code == session::Code::ok) session_consumers_changed();
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
  want_pump();
}

bool TopicRuntime::add_credit(SessionConsumer& consumer, const session::Credit& credit) {
  want_pump();
  return consumers_.add_credit(consumer, credit);
}

void TopicRuntime::acknowledge(SessionConsumer& consumer, const session::Acknowledge& acknowledged) {
  consumers_.acknowledge(consumer, acknowledged);
  want_pump();
}

void TopicRuntime::reject(SessionConsumer& consumer, const session::Reject& rejected) {
  consumers_.reject(consumer, rejected, EventLoop::Clock::now());
  want_pump();
}

void TopicRuntime::extend(SessionConsumer& consumer, const session::Extend& extended) {
  consumers_.extend(consumer, extended, EventLoop::Clock::now());
  want_pump();
}

Result<Offset> TopicRuntime::seek(SessionConsumer& consumer, session::Place to) {
  const auto next = consumers_.seek(consumer, to);
  want_pump();
  return next;
}

void TopicRuntime::consumer_writable(SessionConsumer& consumer) {
  consumers_.wake(consumer);
  want_pump();
}

void TopicRuntime::want_pump() {
  context_.loop.call_soon(*this);
}

std::optional<BatchSlice> TopicRuntime::read_slice(RecordReader& walk, Offset end,
                                                   std::uint64_t message_bytes_max, CodecSet codecs) {
  last_active_ = context_.now();
  want_ticks();  // memory that is kept for reading is released after a while without reads
  return topic_.read_slice(walk, end, message_bytes_max, codecs);
}

PublishOutcome TopicRuntime::store(const OfferedBatch& batch, const Sequences& sequences) {
  last_active_ = context_.call_clock.now();
  const auto outcome = topic_.publish(batch, last_active_);
  if (outcome == PublishOutcome::accepted) storage_.producers->stored(sequences, last_active_);
  return report(outcome, batch.bytes.size());
}

void TopicRuntime::fetch_ahead_hot() const {
  fetch_ahead_up_to(this, topic_.hot_end());
  lightq::fetch_ahead_hot(producers_);
  fetch_ahead(&consumers_);
  fetch_ahead_up_to(&stopping_, &purged_);
}

void TopicRuntime::fetch_ahead_for_input(unsigned step) const {
  if (step == 0) {
    fetch_ahead(storage_.producers.get());
    consumers_.fetch_ahead_first();
  }
  if (step == 1) storage_.producers->fetch_ahead_newest();
  topic_.fetch_ahead_for_input(step);
}

void TopicRuntime::want_flush() {
  flush_wanted_ = true;
}

std::uint64_t TopicRuntime::batch_bytes_max() const {
  const auto& settings = definition().settings;
  std::uint64_t most = UINT32_MAX;
  if (settings.broker_type != protocol::BrokerType::file) most = std::min(most, settings.ring_bytes);
  if (settings.broker_type != protocol::BrokerType::queue && settings.capacity_bytes > 0)
    most = std::min(most, settings.capacity_bytes);
  return most;
}

/// Called after each append. Logs when writing begins to fail and when it works again. Counts the bytes that
/// a start has to read to know the producers.
PublishOutcome TopicRuntime::report(PublishOutcome outcome, std::uint64_t bytes) {
  if (outcome == PublishOutcome::accepted) storage_.producers->appended(bytes);
  if (outcome != PublishOutcome::accepted && topic_.held_by_disk() && !std::exchange(warned_of_disk_, true)) {
    const char* what = outcome == PublishOutcome::held ? "producers are held back" : "messages are rejected";
    context_.sink.error("topic " + definition().name.text() + ": " + what +
                        ", the log cannot be written: " + topic_.log().last_error().text());
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

void TopicRuntime::begin_stop(session::Code why) {
  stopping_ = true;
  end_commands(why);
  producers_.end(why,
                 why == session::Code::topic_deleted ? "the topic is deleted" : "the broker is stopping");
  consumers_.end(why,
                 why == session::Code::topic_deleted ? "the topic is deleted" : "the broker is stopping");
  endpoints_.stop_accepting();
}

void TopicRuntime::pump() {
  last_active_ = context_.now();
  published();
}

/// Uses the time of the last publication, which is precise enough.
void TopicRuntime::published() {
  if (stopping_) return;
  const auto pumped = consumers_.pump(context_.loop.call_time());
  if (pumped.more) context_.loop.call_soon(*this);
  if (std::exchange(resume_soon_, false) || pumped.progress) resume_held();
  if (storage_.write_behind != nullptr) maintain(last_active_);
  hurry_producers();
  save_producers(last_active_);
  start_disk_job(last_active_);
  if (cursors_awaited()) save_cursors(last_active_);
  arm_group_timer();
  want_ticks();
}

/// Sets a timer for the next pump. It handles messages that were not acknowledged in time, were rejected with
/// a delay, or were unavailable.
void TopicRuntime::arm_group_timer() {
  const SteadyTime next = topic_.next_timer();
  if (next >= group_timer_at_) return;
  context_.loop.cancel(group_timer_);
  group_timer_at_ = next;
  group_timer_ = context_.loop.at(next, [this] {
    group_timer_at_ = never;
    pump();
  });
}

void TopicRuntime::want_ticks() {
  if (std::exchange(ticking_, true)) return;
  ticker_.tick_wanted(*this);
}

bool TopicRuntime::tick() {
  if (stopping_) return ticking_ = false;
  const Timestamp now = context_.now();
  maintain(now);
  resume_held();
  if (held_) endpoints_.tend_held(++ticks_ % ticks_per_second == 0);
  hurry_producers();
  try_purges_again();
  save_producers(now);
  start_disk_job(now);
  save_cursors(now);
  report_losses(now);
  report_unavailable();
  ticking_ = held_ || !purges_again_.empty() || storage_.producers->wants_save() || jobs_out_ > 0 ||
             unsaved() || topic_.log().wants_disk_work() ||
             !log::has_passed(last_active_, ticks_after_activity_us, now);
  if (!ticking_) {
    endpoints_.release_idle_memory();
    arm_retention();
  }
  return ticking_;
}

void TopicRuntime::maintain(Timestamp now) {
  if (storage_.write_behind == nullptr) return topic_.log().maintain(now);
  if (writing_behind_fails_ && now < write_again_ && write_again_.us - now.us <= write_again_interval_us)
    return;
  const Offset written_before = storage_.write_behind->written_offset();
  topic_.log().maintain(now);
  look_after_writing_behind(written_before, now);
  // Write-behind writes one piece a turn, so that other topics get their turns.
  if (storage_.write_behind->more_to_write()) context_.loop.call_soon(*this);
}

/// Detects that write-behind has written nothing for a second although messages wait. Then it logs an error
/// and lets the disk be tried only once a second, because an attempt that fails may be slow.
void TopicRuntime::look_after_writing_behind(Offset written_before, Timestamp now) {
  const Offset written = storage_.write_behind->written_offset();
  const bool all_written = written == topic_.log().next_offset();
  const std::string where = "topic " + definition().name.text() + ": ";
  if (all_written || written != written_before) {
    behind_since_ = all_written ? Timestamp{} : now;
    if (std::exchange(writing_behind_fails_, false))
      context_.sink.info(where + "it is written to the disk again");
    return;
  }
  if (behind_since_ == Timestamp{} || now < behind_since_) behind_since_ = now;
  if (now.us - behind_since_.us < write_again_interval_us) return;
  write_again_ = {now.us + write_again_interval_us};
  if (std::exchange(writing_behind_fails_, true)) return;
  context_.sink.error(
      where + "its messages stay in memory, the disk cannot be written: " + topic_.log().last_error().text());
}

/// Returns true if something waits to be written: a queue_file topic's messages in memory, or cursors that
/// could not be saved.
bool TopicRuntime::unsaved() const {
  const bool behind = storage_.write_behind != nullptr &&
                      storage_.write_behind->written_offset() < topic_.log().next_offset();
  return behind || cursors_failed_;
}

/// Sets a timer for a tick, so that old messages are removed even if nothing else happens.
void TopicRuntime::arm_retention() {
  const auto retention_ms = definition().settings.retention_ms;
  if (retention_ms == 0 || topic_.log().stored_bytes() == 0) return;
  const auto wait = std::chrono::milliseconds(std::clamp<std::uint64_t>(retention_ms / 4, 1'000, 60'000));
  context_.loop.cancel(retention_timer_);
  retention_timer_ = context_.loop.at(EventLoop::Clock::now() + wait, [this] { want_ticks(); });
}

void TopicRuntime::durable_moved() {
  const Offset durable = durable_offset();
  if (durable == durable_known_ || stopping_) return;
  durable_known_ = durable;
  producers_.durable_moved();
}

void TopicRuntime::start_disk_job(Timestamp now) {
  if (log_job_out_) return;
  const bool for_producers = storage_.producers->wants_flush(LogEnds::of(topic_.log()));
  if (std::exchange(flush_wanted_, false) || for_producers) topic_.log().request_flush();
  auto job = topic_.log().take_disk_job(now);
  if (job == nullptr) return;
  log_job_out_ = true;
  submit(std::move(job));
}

void TopicRuntime::submit(std::unique_ptr<log::DiskJob> job) {
  ++jobs_out_;
  context_.disk.submit(std::move(job), [this, &loop = context_.loop](std::unique_ptr<log::DiskJob> ran) {
    // A shared_ptr only because a std::function must be copyable.
    std::shared_ptr<log::DiskJob> shared = std::move(ran);
    loop.post_answer([this, shared] { job_done(*shared); });
  });
}

void TopicRuntime::job_done(log::DiskJob& job) {
  job.finish();
  --jobs_out_;
  if (const auto* const cursors = dynamic_cast<CursorSaveJob*>(&job); cursors != nullptr) {
    cursors_saved(cursors->result());
  } else if (const auto* const producers = dynamic_cast<ProducerSaveJob*>(&job); producers != nullptr) {
    producers_saved(producers->result());
  } else {
    log_job_out_ = false;
    durable_moved();
  }
  if (!stopping_) {
    const Timestamp now = context_.now();
    save_producers(now);  // a snapshot may have waited until the log was durable
    start_disk_job(now);  // for a flush that was requested meanwhile
  }
  if (jobs_out_ > 0) return;
  if (when_idle_) when_idle_();
}

/// On a full disk, deletes files that are only kept for recycling, so that the next save finds space.
void TopicRuntime::make_way(const Result<void>& saved) {
  const bool lacks_space = !saved && saved.error().code == ErrorCode::no_space;
  if (lacks_space && storage_.segments != nullptr) storage_.segments->free_disk();
}

void TopicRuntime::save_producers(Timestamp now) {
  admit_producers();
  auto snapshot = storage_.producers->take_save(LogEnds::of(topic_.log()), now);
  if (snapshot) submit(storage_.save_producers(std::move(*snapshot)));
}

/// Admits producers after their ids are saved. If the disk fails, ends the producers that wait to be
/// admitted, or for their batches to become durable.
void TopicRuntime::admit_producers() {
  const bool sync_failed = storage_.segments != nullptr && storage_.segments->poisoned();
  if (sync_failed) {
    if (!std::exchange(told_of_failed_sync_, true))
      context_.sink.error("topic " + definition().name.text() + ": " +
                          storage_.segments->sync_error().text());
    producers_.end_needing_durable(session::Code::io_error,
                                   "the disk has failed: nothing more becomes durable");
  }
  producers_.admit_settled();
  if (sync_failed) {
    producers_.end_waiting(session::Code::io_error, "the disk has failed: nothing more becomes durable");
    end_purges(storage_.segments->sync_error());
  } else if (writing_behind_fails_) {
    end_waiting_producers(topic_.log().last_error());
  }
}

void TopicRuntime::end_waiting_producers(const Error& error) {
  end_purges(error);
  if (error.code == ErrorCode::no_space)
    return producers_.end_waiting(session::Code::no_space, "the disk is full");
  producers_.end_waiting(session::Code::io_error, "the disk cannot be written");
}

void TopicRuntime::producers_saved(const Result<void>& result) {
  make_way(result);
  storage_.producers->saved(result.ok());
  producers_lack_space_ = !result && result.error().code == ErrorCode::no_space;
  hurry_producers();  // files that waited for the save may be deleted
  if (!stopping_) want_ticks();
  if (!result) end_waiting_producers(result.error());
  settle_purges();
  const bool failed_before = std::exchange(producers_failed_, !result.ok());
  if (!result && !failed_before)
    context_.sink.error("topic " + definition().name.text() + ": its producers: " + result.error().text());
}

/// Writes nothing if nothing has changed. Closes the log last: its mark also states that the cursors are on
/// disk.
void TopicRuntime::flush_for_stop() {
  const std::string where = "topic " + definition().name.text() + ": ";
  auto flushed = topic_.log().flush();
  if (auto last = storage_.producers->take_last_save(LogEnds::of(topic_.log()))) {
    const auto job = storage_.save_producers(std::move(*last));
    job->run();
    producers_saved(job->result());
  }
  auto current = cursors(std::numeric_limits<std::size_t>::max());
  Result<void> kept;
  if (storage_.keeps_cursors() && (!cursors_kept_ || current != saved_cursors_)) {
    const auto job = storage_.save_cursors(current);
    job->run();
    kept = job->result();
  }
  if (!kept) context_.sink.error(where + "its cursors: " + kept.error().text());
  if (flushed && kept) flushed = topic_.log().close();
  if (!flushed) context_.sink.error(where + "flush: " + flushed.error().text());
}

}  // namespace lightq::broker
