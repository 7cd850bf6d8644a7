/// A durable log: opening and closing it, and the calls that concern several of its parts. Layer: log.
#include "log/segment_log/segment_log.hpp"

#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include <lightq/base/limits.hpp>

#include "log/segment/failed_sync.hpp"

namespace lightq::log {

namespace {

LogIdentity identity_of(const RecoveredSegments& recovered, const SegmentLogOptions& options,
                        Storage& storage) {
  LogIdentity identity{recovered.incarnation, recovered.batch_mask};
  const bool is_new = identity.incarnation == 0;
  while (identity.incarnation == 0) identity.incarnation = storage.random();
  while (identity.batch_mask == 0) identity.batch_mask = static_cast<std::uint32_t>(storage.random());
  if (is_new && options.expected.id != 0)
    identity.incarnation = std::uint64_t{options.expected.id} << 32 | (identity.incarnation & 0xFFFFFFFF);
  return identity;
}

std::unique_ptr<EncryptedBatches> encryption_of(RecoveredSegments& recovered,
                                                const SegmentLogOptions& options,
                                                const LogIdentity& identity) {
  if (recovered.cipher == nullptr && options.ciphers != nullptr)
    recovered.cipher = options.ciphers->of(identity.incarnation);
  if (recovered.cipher == nullptr) return nullptr;
  return std::make_unique<EncryptedBatches>(std::move(recovered.cipher), options.decrypted);
}

Result<void> check(const SegmentLogOptions& options) {
  if (options.segment_bytes < segment_file_bytes_min || options.segment_bytes > limits::segment_bytes_max) {
    return Error{ErrorCode::invalid_argument,
                 "segment_bytes is " + std::to_string(options.segment_bytes) + ", outside of " +
                     std::to_string(segment_file_bytes_min) + " to " +
                     std::to_string(limits::segment_bytes_max),
                 0};
  }
  if (options.ciphers != nullptr && (options.mapped_writes || options.views != nullptr))
    return Error{ErrorCode::invalid_argument, "a log with mapped files cannot be encrypted", 0};
  return {};
}

}  // namespace

Result<std::unique_ptr<SegmentLog>> SegmentLog::open(SegmentLogOptions options, Storage& storage,
                                                     SegmentPool& pool, Timestamp now) {
  if (const auto valid = check(options); !valid) return valid.error();
  auto recovered = recover_segments(options.directory, storage, options.ciphers, options.expected);
  if (!recovered) return recovered.error();
  std::unique_ptr<SegmentLog> log(new SegmentLog(std::move(options), storage, pool, std::move(*recovered)));
  SegmentSync& sync = log->sync_;
  // Syncs the appends of the earlier process, as they may not be on disk yet; if that fails, durable_offset
  // says so. A mapped log promises nothing about power cuts, so it does not wait for the disk here. A log
  // that was closed is on disk, except for full segments that have lost their last seal or were about to be
  // retired.
  const bool to_sync =
      log->recovery_.closed ? sync.durable_offset() < log->next_offset() : !log->options_.mapped_writes;
  if (has_failed_sync(log->options_.directory, storage)) sync.settle_doubts();
  if (to_sync && !sync.poisoned()) static_cast<void>(sync.flush());
  for (const auto& segment : log->segments()) segment->release();
  if (log->options_.mapped_writes && !log->segments_.empty() && !log->segments_.active().sealed) {
    if (auto mapped = log->segments_.active().open_mapped(storage, log->options_.views); !mapped)
      return mapped.error();
  }
  SegmentNode* before = nullptr;
  for (const auto& segment : log->segments()) {
    log->roller_.publish(*segment, before);
    before = segment->node().get();
  }
  log->retention_.date_segments(now);
  sync.note_opened(now);
  log->idle_.note_opened(now);
  return log;
}

SegmentLog::SegmentLog(SegmentLogOptions options, Storage& storage, SegmentPool& pool,
                       RecoveredSegments recovered)
    : options_(std::move(options)),
      storage_(storage),
      pool_(pool),
      identity_(identity_of(recovered, options_, storage)),
      encrypted_(encryption_of(recovered, options_, identity_)),
      recovery_(std::move(recovered.report)),
      segments_(std::move(recovered.segments)),
      directory_(options_.directory, storage_, !segments_.empty(), recovery_.closed),
      views_(storage_),
      mappings_(options_, pool_),
      close_mark_(storage_, recovery_),
      dropped_(options_, segments_, pool_),
      descriptors_(segments_),
      sync_(options_, storage_, pool_, segments_, directory_, dropped_, last_error_, recovered.durable),
      next_(options_, pool_, segments_, dropped_, sync_, identity_, encrypted_.get()),
      roller_({options_, storage_, segments_, directory_, next_, sync_, views_, mappings_, descriptors_,
               close_mark_}),
      appender_(options_, storage_, segments_, next_, roller_, close_mark_, encrypted_.get(), last_error_),
      reader_(options_, storage_, segments_, views_, encrypted_.get(), last_error_),
      retention_(options_, segments_, dropped_, next_, appender_, roller_, views_, mappings_, last_error_),
      jobs_({directory_, dropped_, sync_, next_, descriptors_, mappings_}, storage_, pool_),
      idle_(segments_, views_, encrypted_.get()) {}

SegmentLog::~SegmentLog() {
  SegmentJobState& state = *sync_.job_state();
  const std::lock_guard lock(state.running);
  state.closed = true;
}

AppendResult SegmentLog::append(std::span<std::byte> batch, Timestamp now) {
  const AppendResult result = appender_.append(batch, now);
  if (result.outcome == AppendOutcome::appended) idle_.note_use();
  return result;
}

RoomResult SegmentLog::room_in_place(std::size_t at_least, std::size_t wanted) {
  idle_.note_use();
  return appender_.room_in_place(at_least, wanted);
}

ReadResult SegmentLog::read(ReadPosition& place) {
  idle_.note_use();
  return reader_.find(place, false);
}

void SegmentLog::maintain(Timestamp now) {
  retention_.apply(now);
  if (!options_.mapped_writes) idle_.maintain(now);
}

Result<void> SegmentLog::settle() {
  if (sync_.poisoned()) return sync_.sync_error();
  // A file without a header, which a power cut may leave, does not identify the log.
  if (segments_.empty() || segments_.active().sealed) {
    if (auto rolled = roller_.roll(0); !rolled) return rolled;
  }
  if (auto opened = segments_.active().open_for_writing(storage_); !opened) return opened;
  return sync_.remember();
}

Result<void> SegmentLog::close() {
  if (auto named = directory_.give_name(); !named) return named;
  if (auto flushed = flush(); !flushed) return flushed;
  if (!dropped_.empty()) static_cast<void>(sync_.retire_now());  // on failure the next start finds them again
  return segments_.empty() ? Result<void>{} : close_mark_.write(segments_.active());
}

Result<void> SegmentLog::destroy() {
  SegmentJobState& state = *sync_.job_state();
  const std::lock_guard lock(state.running);
  state.closed = true;
  next_.forget();
  retention_.drop_all();
  // No other log uses these files again.
  for (const RetiredSegment& segment :
       dropped_.ready(sync_.stuck_at(), DroppedSegments::Reason::disk_is_full)) {
    if (auto removed = pool_.remove(segment.path, segment.bytes); !removed) return removed;
  }
  dropped_.forget();
  return directory_.remove();
}

}  // namespace lightq::log
