/// The work of a topic with its store: saves, flushes, purges, and the store's reports. Layer: topic.
#include "topic/runtime/topic_saves.hpp"

#include <utility>

namespace lightq::broker {

TopicSaves::TopicSaves(const Parts& parts, const CursorSaves::Parts& cursors, const FoundTopic& found)
    : parts_(parts),
      producers_({parts.store, parts.known, parts.producers, parts.activity, parts.reports}),
      cursors_(cursors, found),
      purges_({parts.store, cursors.topic, parts.known, cursors_, parts.held, parts.activity}) {
  parts_.store.report_to(*this);
  producers_.hurry();
}

void TopicSaves::save_producers(Timestamp now) {
  if (const Error* const fault = producers_.admit()) purges_.fail(*fault);
  producers_.save(now);
}

void TopicSaves::start_work(Timestamp now) {
  if (const auto end = parts_.known.wants_flush(LogEnds::of(parts_.store))) parts_.store.request_flush(*end);
  parts_.store.start_work(now);
}

void TopicSaves::after_dispatch(Timestamp now) {
  producers_.hurry();
  save_producers(now);
  start_work(now);
  if (cursors_.wants_dispatch()) cursors_.save();
}

void TopicSaves::tick(Timestamp now) {
  producers_.hurry();
  purges_.retry();
  save_producers(now);
  start_work(now);
  cursors_.save();
}

bool TopicSaves::wants_ticks() const {
  return purges_.wants_retry() || parts_.known.wants_save() || cursors_.wants_ticks() ||
         parts_.store.wants_work();
}

void TopicSaves::on_durable() {
  if (parts_.activity.is_stopping()) return;
  const Offset durable = parts_.store.durable_offset();
  if (std::exchange(durable_known_, durable) != durable) parts_.producers.durable_moved();
  const Timestamp now = parts_.activity.now();
  save_producers(now);  // a snapshot may have waited until the log was durable
  start_work(now);      // for a flush that was requested meanwhile
}

void TopicSaves::on_saved(StoredState what, const Result<void>& result) {
  what == StoredState::consumers ? cursors_.saved(result) : producers_saved(result);
  if (parts_.activity.is_stopping()) return;
  const Timestamp now = parts_.activity.now();
  save_producers(now);
  start_work(now);
}

void TopicSaves::on_readable() {
  parts_.reads.wake();
  parts_.activity.want_dispatch();
}

void TopicSaves::producers_saved(const Result<void>& result) {
  producers_.saved(result);
  if (!result) purges_.fail(result.error());
  purges_.settle();
}

void TopicSaves::end_commands(const Error& why) {
  purges_.end(why);
  cursors_.end_waiting(why);
}

/// Writes nothing if nothing has changed. Closes the log last: its mark also states that the cursors are on
/// disk.
void TopicSaves::flush_for_stop() {
  auto flushed = parts_.store.flush();
  producers_.save_for_stop();
  const auto kept = cursors_.save_for_stop();
  if (flushed && kept) flushed = parts_.store.close();
  if (!flushed) parts_.reports.not_flushed(flushed.error());
}

}  // namespace lightq::broker
