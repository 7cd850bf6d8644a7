/// Saves a topic's table of known producers. Layer: topic.
#include "topic/runtime/producer_saves.hpp"

#include <utility>

#include <lightq/base/limits.hpp>

namespace lightq::broker {

namespace {
constexpr std::uint64_t hurry_from_bytes = 16 * limits::MiB;
}  // namespace

const Error* ProducerSaves::admit() {
  constexpr const char* failed = "the disk has failed: no further message becomes durable";
  const Error* const sync_fault = parts_.store.sync_fault();
  if (sync_fault != nullptr) {
    parts_.reports.sync_failed(*sync_fault);
    parts_.producers.end_needing_durable(ClientError::io_error, failed);
  }
  parts_.producers.admit_settled();
  if (sync_fault != nullptr) {
    parts_.producers.end_waiting(ClientError::io_error, failed);
    return sync_fault;
  }
  const Error* const write_fault = parts_.store.write_fault();
  if (write_fault != nullptr) end_waiting(*write_fault);
  return write_fault;
}

void ProducerSaves::end_waiting(const Error& error) {
  if (error.code == ErrorCode::no_space)
    return parts_.producers.end_waiting(ClientError::no_space, "the disk is full");
  parts_.producers.end_waiting(ClientError::io_error, "the disk cannot be written");
}

void ProducerSaves::save(Timestamp now) {
  auto snapshot = parts_.known.take_save(LogEnds::of(parts_.store), now);
  if (snapshot) parts_.store.save_producers(std::move(snapshot->slot));
}

void ProducerSaves::saved(const Result<void>& result) {
  parts_.known.saved(result.ok());
  lack_space_ = !result && result.error().code == ErrorCode::no_space;
  hurry();  // files that waited for the save may be deleted
  if (!parts_.activity.is_stopping()) parts_.activity.want_ticks();
  if (!result) end_waiting(result.error());
  parts_.reports.producers_saved(result);
}

void ProducerSaves::save_for_stop() {
  if (auto last = parts_.known.take_last_save(LogEnds::of(parts_.store)))
    saved(parts_.store.save_producers_now(std::move(last->slot)));
}

/// Otherwise the producers would be unknown after a kill. If many bytes wait, the producers are saved
/// immediately. If they cannot be saved for lack of space, the files are deleted to free it.
void ProducerSaves::hurry() {
  if (!parts_.store.is_durable()) return;
  constexpr Offset nothing{~std::uint64_t{0}};
  parts_.store.keep_dropped_from(lack_space_ ? nothing : parts_.known.needed_from());
  const DroppedMessages dropped = parts_.store.dropped();
  if (dropped.end <= parts_.known.needed_from()) return parts_.reports.kept_dropped();
  parts_.known.want_past(dropped.end);
  if (dropped.bytes < hurry_from_bytes) return;
  if (parts_.known.is_settled(hurried_change_)) hurried_change_ = parts_.known.ask_for_save();
  if (dropped.bytes > dropped.bytes_max) parts_.reports.dropping_too_fast();
}

}  // namespace lightq::broker
