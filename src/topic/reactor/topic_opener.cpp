/// Opens a topic's log, cursors and producers, and repairs them after a crash. Layer: topic.
#include "topic/reactor/topic_opener.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>

#include "log/carried/carried_memory.hpp"
#include "log/format/restored_mark.hpp"
#include "log/memory/ring_log.hpp"
#include "topic/log_settings.hpp"

namespace lightq::broker {

using protocol::BrokerType;

namespace {

// The ring of a `direct` topic. It keeps nothing for later consumers, only messages on their way to connected
// ones.
constexpr std::uint64_t direct_window_bytes = 1 * limits::MiB;

constexpr std::int64_t day_us = 24LL * 3600 * 1'000'000;

std::unique_ptr<DurableProducers> new_producers(DurableProducers::Kept kept, std::size_t producers_max) {
  return std::make_unique<DurableProducers>(kept,
                                            ProducerTable(std::min(producers_max, producer_file_entries_max),
                                                          limits::producer_idle_days_max * day_us));
}

log::SegmentLogOptions segment_options(const TopicDefinition& definition, const StorageSettings& settings,
                                       const std::filesystem::path& directory) {
  const auto& topic = definition.settings;
  const log::LogLimits limits_now = log_limits_of(topic);
  log::SegmentLogOptions options;
  options.directory = directory.string();
  options.first_segment_bytes = limits::segment_bytes_first;
  options.segment_bytes = limits_now.segment_bytes;
  // A write-behind log enforces the capacity itself, because it also counts messages that are not written
  // yet.
  options.capacity_bytes = topic.broker_type == BrokerType::file ? limits_now.capacity_bytes : 0;
  options.retention_bytes = limits_now.retention_bytes;
  options.retention_ms = limits_now.retention_ms;
  options.retention_messages = limits_now.retention_messages;
  options.leaves_others_room = limits_now.leaves_others_room;
  options.flush_interval_ms = settings.flush_interval_ms;
  options.disk_free_floor_bytes = settings.disk_free_floor_bytes;
  return options;
}

}  // namespace

Result<FoundTopic> TopicOpener::open(const TopicDefinition& definition, const StorageSettings& settings,
                                     Timestamp now, LogSink& sink) {
  FoundTopic opened;
  const auto& topic = definition.settings;
  opened.producers = new_producers(DurableProducers::Kept::in_memory, settings.producers_max);
  if (topic.broker_type == BrokerType::queue) {
    opened.log = std::make_unique<log::RingLog>(log::RingLogOptions{.capacity_bytes = topic.ring_bytes});
    opened.carried = std::make_unique<log::CarriedMemory>(topic.ring_bytes / carried_share);
    opened.open_schedule = [](Timestamp) { return Result<std::unique_ptr<FoundSchedule>>(nullptr); };
    return opened;
  }
  if (topic.broker_type == BrokerType::direct) {
    opened.log = std::make_unique<log::RingLog>(
        log::RingLogOptions{.capacity_bytes = settings.message_bytes_max + direct_window_bytes,
                            .soft_limit_bytes = direct_window_bytes});
    opened.carried = std::make_unique<log::CarriedMemory>(direct_window_bytes / carried_share);
    return opened;
  }
  // Cursors and producers are loaded first, so that an error is reported before the log is changed.
  opened.directory = topic_directory(settings, definition.id);
  std::vector<log::NamedCursor> older;
  if (auto cursors = load_cursors(opened, older, definition, sink); !cursors) return cursors.error();
  opened.producer_file = std::make_unique<ProducerFile>(storage_, opened.directory.string());
  const auto found = opened.producer_file->load();
  if (!found && found.error().code != ErrorCode::corrupt) return found.error();
  if (auto segments = open_segments(opened, definition, settings, now, sink); !segments)
    return segments.error();
  if (auto cut = cut_cursors(opened, std::move(older), definition, sink); !cut) return cut.error();
  auto producers = recover_producers(*opened.producer_file, found, *opened.log, settings.producers_max,
                                     "topic " + definition.name.text() + ": ", sink);
  if (!producers) return producers.error();
  opened.producers = std::move(*producers);
  drop_purged(opened, definition, sink);
  if (auto schedule = find_schedule(opened, definition, settings, now, sink); !schedule)
    return schedule.error();
  return opened;
}

/// Opens the schedule if there is one. Otherwise the first producer of delayed messages makes it.
Result<void> TopicOpener::find_schedule(FoundTopic& opened, const TopicDefinition& definition,
                                        const StorageSettings& settings, Timestamp now, LogSink& sink) {
  opened.open_schedule = [this, definition, settings, &sink](Timestamp time) {
    return open_schedule(definition, settings, time, sink);
  };
  const auto directory = (opened.directory / schedule_directory_name).string();
  const auto names = storage_.list(directory);
  if (!names && !log::is_missing(names.error())) return names.error();
  if (!names || names->empty()) return {};
  auto schedule = opened.open_schedule(now);
  if (!schedule) return schedule.error();
  opened.schedule = std::move(*schedule);
  return {};
}

/// Opens the log and the producers of a topic's schedule. Its capacity is the topic's, so the log itself has
/// none, and it drops nothing by itself.
Result<std::unique_ptr<FoundSchedule>> TopicOpener::open_schedule(const TopicDefinition& definition,
                                                                  const StorageSettings& settings,
                                                                  Timestamp now, LogSink& sink) {
  auto opened = std::make_unique<FoundSchedule>();
  opened->directory = topic_directory(settings, definition.id) / schedule_directory_name;
  opened->cursor_file = std::make_unique<log::CursorFile>(storage_, opened->directory.string());
  opened->producer_file = std::make_unique<ProducerFile>(storage_, opened->directory.string());
  const auto found = opened->producer_file->load();
  if (!found && found.error().code != ErrorCode::corrupt) return found.error();
  auto options = segment_options(definition, settings, opened->directory);
  options.capacity_bytes = 0;
  options.retention_bytes = 0;
  options.retention_ms = 0;
  options.retention_messages = 0;
  options.leaves_others_room = true;
  if (auto encrypted = encrypt(options, definition); !encrypted) return encrypted.error();
  auto segments = log::SegmentLog::open(std::move(options), storage_, pool_, now);
  if (!segments) return segments.error();
  const std::string where = "topic " + definition.name.text() + ", delayed messages: ";
  if (const auto& report = (*segments)->recovery(); !report.clean())
    report.damaged.empty() ? sink.warn(where + report.text()) : sink.error(where + report.text());
  opened->segments = std::move(*segments);
  auto producers = recover_producers(*opened->producer_file, found, *opened->segments, settings.producers_max,
                                     where, sink);
  if (!producers) return producers.error();
  opened->producers = std::move(*producers);
  return opened;
}

/// Sets the options of an encrypted log, if the topic is encrypted at rest.
Result<void> TopicOpener::encrypt(log::SegmentLogOptions& options, const TopicDefinition& definition) {
  if (!definition.settings.encrypt_at_rest) return {};
  if (ciphers_ == nullptr) {
    return Error{
        ErrorCode::not_supported,
        "encrypt_at_rest: this broker has no storage key; set storage_key_file or storage_key_command"};
  }
  options.ciphers = ciphers_;
  options.decrypted = &decrypted_;
  options.expected = {definition.log_id, &log_names_};
  return {};
}

Result<void> TopicOpener::open_segments(FoundTopic& opened, const TopicDefinition& definition,
                                        const StorageSettings& settings, Timestamp now, LogSink& sink) {
  auto options = segment_options(definition, settings, opened.directory);
  if (auto encrypted = encrypt(options, definition); !encrypted) return encrypted;
  auto segments = log::SegmentLog::open(options, storage_, pool_, now);
  if (!segments) return segments.error();
  const std::uint64_t carried_max = log_limits_of(definition.settings).carried_bytes_max;
  auto carried = log::CarriedLog::open(std::move(options), carried_max, (*segments)->first_offset(), storage_,
                                       pool_, now);
  if (!carried) return carried.error();
  opened.carried_log = std::move(*carried);
  opened.segments = segments->get();
  const auto& report = opened.segments->recovery();
  if (!report.clean()) {
    const std::string line = "topic " + definition.name.text() + ": " + report.text();
    report.damaged.empty() ? sink.warn(line) : sink.error(line);
  }
  if (definition.settings.broker_type == BrokerType::file) {
    opened.log = std::move(*segments);
    return {};
  }
  auto write_behind = std::make_unique<log::WriteBehindLog>(
      log::WriteBehindOptions{.ring = {.capacity_bytes = definition.settings.ring_bytes},
                              .capacity_bytes = definition.settings.capacity_bytes},
      std::move(*segments));
  opened.write_behind = write_behind.get();
  opened.log = std::move(write_behind);
  return {};
}

Result<void> TopicOpener::load_cursors(FoundTopic& opened, std::vector<log::NamedCursor>& older,
                                       const TopicDefinition& definition, LogSink& sink) {
  opened.cursor_file = std::make_unique<log::CursorFile>(storage_, opened.directory.string());
  auto stored = opened.cursor_file->load(log::UnreadableSlot::refuses, &older);
  if (!stored) return stored.error();
  if (const auto& passed_over = opened.cursor_file->passed_over()) {
    sink.warn("topic " + definition.name.text() +
              ": using an older copy of its cursors, because the newest is damaged: " + passed_over->text());
  }
  opened.stored = std::move(*stored);
  std::ranges::sort(opened.stored, {}, &log::NamedCursor::name);
  return {};
}

/// Moves cursors that are past the log's end back to it. A power cut can take the log's end. The moved
/// cursors are on disk before anything is appended. Otherwise, after a crash, new messages with those offsets
/// would count as processed. If the moved cursors cannot be written, the topic stays closed.
///
/// Cursors are also written if only the older copy of the cursor file is past the end. An earlier start may
/// have moved them and crashed, or failed, before the sync.
///
/// Example: the log ends at 120 after a power cut, and a cursor is at 150. It continues at 120.
Result<void> TopicOpener::cut_cursors(FoundTopic& opened, std::vector<log::NamedCursor> older,
                                      const TopicDefinition& definition, LogSink& sink) {
  const std::string where = "topic " + definition.name.text() + ": ";
  const Offset end = opened.log->next_offset();
  bool any = false;
  for (log::NamedCursor& cursor : opened.stored) {
    const Offset before = cursor.offset;
    any |= cursor.cut_at(end);
    const bool is_mark =
        cursor.name == purged_cursor_name || cursor.name.starts_with(LogLives::cursor_prefix);
    if (before <= end || is_mark) continue;
    sink.warn(where + "its " + cursor.name + " was at message " + std::to_string(before.value) +
              ", but the log ends at " + std::to_string(end.value) + "; it continues there");
  }
  for (log::NamedCursor& cursor : older) any |= cursor.cut_at(end);
  const bool is_restored = log::is_marked_restored(opened.directory.string(), storage_);
  const bool begun = begin_life(opened, is_restored);
  if (!any && !begun) return {};  // a mark that no life needs stays; the log may get segments
  auto current = opened.stored;
  std::erase_if(current, [](const auto& cursor) { return cursor.name.starts_with(LogLives::cursor_prefix); });
  std::ranges::move(opened.lives.cursors(), std::back_inserter(current));
  std::ranges::sort(current, {}, &log::NamedCursor::name);
  const auto written = opened.cursor_file->write(log::CursorFile::encode(current));
  if (written) {
    opened.stored = std::move(current);
    if (!begun || !is_restored) return {};
    if (const auto cleared = log::clear_restored(opened.directory.string(), storage_); !cleared)
      sink.warn(where + "each start begins a new incarnation until this file can be removed: " +
                cleared.error().text());
    return {};
  }
  // A restored log has lost messages that clients have seen, and the end of the log tells where only now.
  if (!any && !is_restored) {  // the cursors on disk are correct; only the life is not recorded, so the topic
                               // can open
    opened.lives.hide(random_number<std::uint32_t>());
    sink.warn(where + "reconnecting consumers without a named cursor begin anew: " + written.error().text());
    return {};
  }
  Error error = written.error();
  error.message = "cannot store cursors at the end of the log: " + error.message;
  return error;
}

/// Loads the log's lives. Begins a new life, and returns true, if the log was not closed or has been
/// restored. Such a log may lack messages that clients had received, and then assigns their offsets to other
/// messages (LogLives). A log without segments has a new incarnation anyway.
bool TopicOpener::begin_life(FoundTopic& opened, bool is_restored) {
  opened.lives = LogLives(opened.segments->incarnation(), opened.stored);
  const bool is_a_copy = is_restored && opened.segments->recovery().segments != 0;
  if (opened.was_closed() && !is_a_copy) return false;
  opened.lives.begin(opened.log->next_offset(), random_number<std::uint32_t>());
  return true;
}

/// Drops messages that were purged before the start, if their files were not removed yet. If a power cut took
/// the segment that the purge began, the log's last segment is ended first, so that it can be dropped.
void TopicOpener::drop_purged(FoundTopic& opened, const TopicDefinition& definition, LogSink& sink) {
  const auto purged = opened.stored_cursor(purged_cursor_name);
  if (purged) opened.carried_log->remove({Offset{0}, *purged});
  if (!purged || *purged <= opened.log->first_offset()) return;
  const bool all = opened.log->next_offset() <= *purged;
  if (const auto ended = all ? opened.log->end_segment() : Result<void>{}; !ended) {
    sink.error(
        "topic " + definition.name.text() +
        ": purged messages are visible again, because they cannot be dropped: " + ended.error().text());
  }
  opened.log->drop_before(*purged);
}

/// Restores the known producers of a log. A damaged producer file does not keep the topic closed. Producers
/// that are unknown after it receive an error, and none of their messages is lost or stored twice. A file of
/// another version keeps the topic closed.
Result<std::unique_ptr<DurableProducers>> TopicOpener::recover_producers(
    ProducerFile& file, const Result<std::optional<ProducerSnapshot>>& found, log::BatchLog& log,
    std::size_t producers_max, const std::string& where, LogSink& sink) {
  auto producers = new_producers(DurableProducers::Kept::on_disk, producers_max);
  DurableProducers::Recovery recovery;
  if (!found) recovery = {found.error().text(), true};
  if (const auto& passed_over = file.passed_over(); found && passed_over)
    sink.warn(where +
              "using an older copy of its producers, because the newest is damaged: " + passed_over->text());
  if (found && *found) {
    auto recovered = producers->recover(**found, log);
    if (!recovered) return recovered.error();
    recovery = std::move(*recovered);
  }
  if (recovery.doubt) {
    sink.warn(where +
              "the broker has forgotten producers, which receive unknown_producer: " + *recovery.doubt);
  }
  if (recovery.remove_file) {
    if (auto removed = file.remove(); !removed) return removed.error();
  }
  return producers;
}

}  // namespace lightq::broker
