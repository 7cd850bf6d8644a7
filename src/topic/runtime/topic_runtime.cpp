/// A topic at work: the connection of its parts, its ticks and the clean stop. Layer: topic.
#include "topic/runtime/topic_runtime.hpp"

#include <algorithm>
#include <utility>

#include <lightq/base/fetch_ahead.hpp>

namespace lightq::broker {

namespace {

// Long enough for a ring to notice that it is idle and to release its memory.
constexpr std::int64_t ticks_after_activity_us = 15'000'000;
// A save of cursors begins at most 10 s after a change, unless the disk does not respond (CursorSaves).
constexpr std::int64_t unsaved_tail_us = 60'000'000;

const char* sentence_of(ClientError why) {
  return why == ClientError::topic_deleted ? "the topic is deleted" : "the broker is stopping";
}

}  // namespace

TopicRuntime::TopicRuntime(ReactorContext& context, Ticker& ticker, const MakeEndpoints& make_endpoints,
                           TopicDefinition definition, std::unique_ptr<TopicStore> store, FoundTopic found)
    : context_(context),
      held_store_(std::move(store)),
      known_producers_(std::move(found.producers)),
      topic_(std::move(definition), *held_store_.store, context.now(), context.settings.groups,
             &context.ranges),
      producers_(*known_producers_, context.now),
      consumers_(topic_, activity_, held_store_.store->is_durable(), context_.settings.limits_reached),
      dispatch_({.context = context,
                 .topic = topic_,
                 .store = *held_store_.store,
                 .consumers = consumers_,
                 .held = held_,
                 .saves = saves_,
                 .activity = activity_}),
      publishing_({.context = context,
                   .topic = topic_,
                   .store = *held_store_.store,
                   .known = *known_producers_,
                   .producers = producers_,
                   .held = held_,
                   .dispatch = dispatch_,
                   .activity = activity_,
                   .reports = reports_,
                   .owners = owners_,
                   .lives = lives_}),
      activity_(context, dispatch_, *this, ticker),
      endpoints_(make_endpoints(context, topic_, publishing_, dispatch_)),
      held_(topic_, producers_, *endpoints_, activity_),
      reports_(context.sink, topic_, *held_store_.store, context.settings.message_bytes_max),
      saves_({.store = *held_store_.store,
              .known = *known_producers_,
              .producers = producers_,
              .held = held_,
              .reads = reads_,
              .activity = activity_,
              .reports = reports_,
              .latencies = context.latencies},
             {.store = *held_store_.store,
              .topic = topic_,
              .endpoints = *endpoints_,
              .consumers = consumers_,
              .activity = activity_,
              .reports = reports_,
              .lives = lives_,
              .book = book_},
             found),
      reads_(context, topic_, activity_),
      letters_(topic_, *held_store_.store, saves_.cursors(), reads_, activity_),
      commands_(topic_, *held_store_.store, saves_.cursors(), saves_.purges(), held_, reads_, activity_),
      owners_(context.access, topic_.definition().id),
      lives_(std::move(found.lives)),
      book_(found.stored, {held_store_.store->first_offset(), held_store_.store->next_offset()}),
      schedule_(make_topic_schedule({.context = context,
                                     .topic = topic_,
                                     .store = *held_store_.store,
                                     .publishing = publishing_,
                                     .activity = activity_,
                                     .owners = owners_},
                                    *known_producers_, std::move(found.open_schedule))) {
  for (const auto& [group, setup] : topic_.definition().groups) topic_.groups().set_settings(group, setup);
  for (ConsumerGroup* const group : topic_.groups().list(ConsumerGroups::Listed::named))
    group->dead().park_without_target();
  // After a crash the cursor may lack because the first such messages came after the last save.
  topic_.expiry().note_stored(found.stored_cursor(ttl_cursor_name),
                              found.was_closed() ? std::nullopt : std::optional(unsaved_tail_us));
  // Restored messages become ready, expire or die in time, whether or not a client comes.
  const bool any_waits = topic_.groups().next_timer() != never;
  if (topic_.expiry().index() != nullptr || any_waits) activity_.want_dispatch();
  if (found.schedule != nullptr) schedule_->start(std::move(found.schedule));
}

TopicRuntime::~TopicRuntime() {
  endpoints_.reset();  // first, because their connections report to the other parts
}

Result<void> TopicRuntime::reopen(const EndpointRecord& record) {
  return endpoints_->reopen(record,
                            saves_.cursors().found(TopicEndpoints::subscriber_cursor_name(record.id)));
}

namespace {
protocol::DelayedStats shown(const DelayedStats& stats) {
  const auto number = [](std::int64_t us) { return static_cast<std::uint64_t>(us > 0 ? us : 0); };
  return {.messages = stats.messages,
          .bytes = stats.bytes,
          .next_due_us = stats.next_due ? number(stats.next_due->us) : 0,
          .moved = stats.moved,
          .cancelled = stats.cancelled,
          .late_us_max = number(stats.late_us_max),
          .corrupt = stats.corrupt,
          .waiting_by = stats.waiting_by};
}
}  // namespace

protocol::TopicStats TopicRuntime::stats(std::uint64_t members_max) {
  topic_.groups().give_up_dropped();  // so that no request walks over dropped messages
  const Timestamp now = context_.now();
  auto stats = topic_.stats(now, EventLoop::Clock::now(), members_max);
  stats.duplicates = publishing_.duplicates();
  stats.blocked_ms = held_.waited_ms();
  stats.messages_out = deliveries_most_ = std::max(deliveries_most_, stats.deliveries);
  stats.oldest_ms = oldest_.age_ms(*held_store_.store, now);
  endpoints_->add_stats(stats);
  stats.open_by_broker = context_.settings.open_topics;
  stats.open = stats.settings.open || stats.open_by_broker;
  stats.publishers_count += producers_.connected_clients() + schedule_->connected();
  stats.subscribers_count += consumers_.connected();
  if (schedule_->is_made()) stats.delayed = shown(schedule_->stats());
  return stats;
}

TopicConsumers::Refusal TopicRuntime::open_consumer(const ConsumeRequest& asked, SessionConsumer& consumer,
                                                    std::uint64_t user) {
  if (activity_.is_stopping()) return {ClientError::shutting_down};
  const auto former = topic_.groups().owner_of(asked.group);
  if (former && owners_.is_gone(*former)) topic_.groups().disown(asked.group);
  const auto refusal = consumers_.open(asked, consumer, lives_, user, owners_.owner_for(user));
  if (refusal.code == ClientError::none) held_.resume_soon();
  return refusal;
}

/// Calls no consumer or producer within this call: waiting producers, too, resume in a later turn of the
/// loop.
void TopicRuntime::detach_consumer(SessionConsumer& consumer) {
  consumers_.detach(consumer);
  held_.resume_soon();
}

void TopicRuntime::fetch_ahead_fields() const {
  fetch_ahead_up_to(this, topic_.hot_end());
  lightq::fetch_ahead_hot(producers_);
  fetch_ahead(&consumers_);
  fetch_ahead_up_to(&dispatch_, saves_.hot_end());
}

void TopicRuntime::fetch_ahead_for_input(unsigned step) const {
  if (step == 0) fetch_ahead(known_producers_.get());
  if (step == 1) known_producers_->fetch_ahead_newest();
  topic_.fetch_ahead_for_input(step);
}

bool TopicRuntime::tick() {
  if (activity_.is_stopping()) return activity_.set_ticking(false);
  const Timestamp now = context_.now();
  const Offset first = topic_.log().first_offset();
  if (held_store_.store->maintain(now)) activity_.want_dispatch();
  dispatch_.follow_drops(first);
  topic_.carry_over().sweep();
  held_.resume();
  held_.tend();
  saves_.tick(now);
  const bool schedule_works = schedule_->tick(now);
  reports_.losses(now);
  reports_.unavailable();
  reports_.carried(now);
  const bool ticking = held_.any() || schedule_works || saves_.wants_ticks() ||
                       activity_.was_used_within(ticks_after_activity_us, now);
  if (!activity_.set_ticking(ticking)) {
    endpoints_->release_idle_memory();
    dispatch_.arm_retention();
  }
  return ticking;
}

/// The schedule is closed first: the end of the topic's log then states more than the schedule needs to know.
void TopicRuntime::flush_for_stop() {
  schedule_->flush_for_stop();
  saves_.flush_for_stop();
}

void TopicRuntime::when_idle_on_disk(std::function<void()> call) {
  TopicStore& store = *held_store_.store;
  if (store.is_idle()) return schedule_->when_idle_on_disk(std::move(call));
  store.when_idle([this, call = std::move(call)] {
    if (schedule_->is_idle_on_disk()) return call();
    schedule_->when_idle_on_disk(call);
  });
}

void TopicRuntime::begin_stop(ClientError why) {
  activity_.begin_stop();
  reads_.wake();
  saves_.end_commands(why == ClientError::topic_deleted
                          ? Error{ErrorCode::topic_not_found, "topic not found"}
                          : Error{ErrorCode::shutting_down, "the broker is stopping"});
  schedule_->begin_stop(why, sentence_of(why));
  producers_.end(why, sentence_of(why));
  consumers_.end(why, sentence_of(why));
  endpoints_->stop_accepting();
}

}  // namespace lightq::broker
