/// A durable log: opening and appending. Layer: log. Reading is in segment_log_reading.cpp and
/// segment_log_search.cpp, dropping in segment_log_upkeep.cpp, disk jobs in segment_log_jobs.cpp.
#include "log/segment_log.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include <lightq/base/limits.hpp>

#include "log/failed_sync.hpp"

namespace lightq::log {

namespace {

constexpr std::uint64_t batch_bytes_max = 4 * limits::GiB - 64 * limits::KiB;
// The writer does not make the pages of larger segments present.
constexpr std::uint64_t prefault_by_writer_max = limits::MiB;

}  // namespace

Result<std::unique_ptr<SegmentLog>> SegmentLog::open(SegmentLogOptions options, Storage& storage,
                                                     SegmentPool& pool, Timestamp now) {
  if (options.segment_bytes < segment_file_bytes_min || options.segment_bytes > limits::segment_bytes_max) {
    return Error{ErrorCode::invalid_argument,
                 "segment_bytes is " + std::to_string(options.segment_bytes) + ", outside of " +
                     std::to_string(segment_file_bytes_min) + " to " +
                     std::to_string(limits::segment_bytes_max),
                 0};
  }
  if (options.ciphers != nullptr && (options.mapped_writes || options.views != nullptr))
    return Error{ErrorCode::invalid_argument, "a log with mapped files cannot be encrypted", 0};
  auto recovered = recover_segments(options.directory, storage, options.ciphers, options.expected);
  if (!recovered) return recovered.error();
  std::unique_ptr<SegmentLog> log(new SegmentLog(std::move(options), storage, pool, std::move(*recovered)));
  // Syncs the appends of the earlier process, as they may not be on disk yet; if that fails, durable_offset
  // says so. A mapped log promises nothing about power cuts, so it does not wait for the disk here. A log
  // that was closed is on disk, except for full segments that have lost their last seal or were about to be
  // retired.
  const bool closed = log->recovery_.closed;
  const bool sync = closed ? log->durable_ < log->next_ : !log->options_.mapped_writes;
  if (has_failed_sync(log->options_.directory, storage)) log->settle_doubts();
  if (sync && !log->poisoned_) static_cast<void>(log->flush());
  for (const auto& segment : log->segments_) segment->release();
  if (log->options_.mapped_writes && !log->segments_.empty() && !log->segments_.back()->sealed) {
    if (auto mapped = log->segments_.back()->open_mapped(storage, log->options_.views); !mapped)
      return mapped.error();
  }
  SegmentNode* before = nullptr;
  for (const auto& segment : log->segments_) {
    log->publish(*segment, before);
    before = segment->node().get();
  }
  log->date_segments(now);
  log->last_sync_ = now;
  log->last_use_ = now;
  return log;
}

SegmentLog::SegmentLog(SegmentLogOptions options, Storage& storage, SegmentPool& pool,
                       RecoveredSegments recovered)
    : options_(std::move(options)),
      storage_(storage),
      pool_(pool),
      segments_(std::move(recovered.segments)),
      incarnation_(recovered.incarnation),
      batch_mask_(recovered.batch_mask),
      directory_made_(!segments_.empty()),
      parent_unsynced_(!segments_.empty()),  // the process that made it may have been killed before its sync
      rolls_(segments_.empty() ? 0 : 1),
      jobs_(std::make_shared<SegmentJobState>()),
      recovery_(std::move(recovered.report)) {
  const bool is_new = incarnation_ == 0;
  while (incarnation_ == 0) incarnation_ = storage_.random();
  while (batch_mask_ == 0) batch_mask_ = static_cast<std::uint32_t>(storage_.random());
  if (is_new && options_.expected.id != 0)
    incarnation_ = std::uint64_t{options_.expected.id} << 32 | (incarnation_ & 0xFFFFFFFF);
  if (recovered.cipher == nullptr && options_.ciphers != nullptr)
    recovered.cipher = options_.ciphers->of(incarnation_);
  if (recovered.cipher != nullptr)
    encrypted_ = std::make_unique<EncryptedBatches>(std::move(recovered.cipher), options_.decrypted);
  for (const auto& segment : segments_) stored_bytes_ += segment->stored_bytes();
  if (!segments_.empty()) next_ = segments_.back()->end_offset();
  durable_ = recovered.durable;
  if (recovery_.closed) synced_rolls_ = rolls_;
  maybe_closed_on_disk_ = recovery_.closed;
  closed_ = recovery_.closed_for_good;
}

SegmentLog::~SegmentLog() {
  const std::lock_guard lock(jobs_->running);
  jobs_->closed = true;
}

Offset SegmentLog::first_offset() const {
  return segments_.empty() ? next_ : segments_.front()->first_offset();
}

AppendResult SegmentLog::append(std::span<std::byte> batch, Timestamp now) {
  assert(batch.size() >= batch_layout::header_bytes &&
         BatchView::trusted(batch.data()).total_bytes() == batch.size());
  const std::size_t bytes = bytes_on_disk(batch.size());
  if (bytes > batch_bytes_max) return {AppendOutcome::too_large, {}};
  const BatchView view = BatchView::trusted(batch.data());
  if (!fits_capacity(bytes, view.record_count())) return {AppendOutcome::full, {}};
  if (const auto ready = make_writable(bytes, view.record_count()); !ready) {
    return {outcome_of(ready.error()), {}};
  }
  SegmentFile& active = *segments_.back();
  const std::uint32_t mask = active.header().batch_mask;
  stamp_batch(batch, next_, now, active.header().epoch, encrypted_ == nullptr ? mask : 0);
  const BatchView stored = encrypted_ == nullptr ? view : encrypted_->encrypt(view, mask);
  if (const auto written = active.append(stored); !written) return {outcome_of(written.error()), {}};
  const Offset base = next_;
  next_ = view.end_offset();
  stored_bytes_ += bytes;
  used_ = true;
  return {AppendOutcome::appended, base};
}

SegmentLog::RoomResult SegmentLog::room_in_place(std::size_t at_least, std::size_t wanted) {
  assert(options_.mapped_writes && at_least <= wanted);
  if (at_least > batch_bytes_max) return {AppendOutcome::too_large, {}};
  if (!fits_capacity(at_least, 1)) return {AppendOutcome::full, {}};
  if (const auto ready = make_writable(at_least, 1); !ready) return {outcome_of(ready.error()), {}};
  SegmentFile& active = *segments_.back();
  if (options_.capacity_bytes != 0 && stored_bytes_ != 0) {
    wanted = std::max<std::uint64_t>(
        at_least, std::min<std::uint64_t>(wanted, options_.capacity_bytes - stored_bytes_));
  }
  const std::uint64_t reserved = active.checkpoint().reserved - active.end_position();
  used_ = true;
  return {AppendOutcome::appended,
          {active.room(std::min<std::uint64_t>(wanted, reserved)), active.first_page(), active.end_position(),
           active.header()}};
}

void SegmentLog::append_in_place(std::span<std::byte> batch) {
  const BatchView view = BatchView::trusted(batch.data());
  segments_.back()->append_in_place(view);
  next_ = view.end_offset();
  stored_bytes_ += batch.size();
}

// Makes the active segment ready for a batch of this size, beginning a new segment if it does not fit.
Result<void> SegmentLog::make_writable(std::size_t bytes, std::uint64_t messages) {
  // A batch that is written in place may still grow to batch_records_max records.
  if (next_.value > limits::offset_max - limits::batch_records_max) {
    return Error{ErrorCode::limit_reached, options_.directory + " has used up its offsets, which end at " +
                                               std::to_string(limits::offset_max)};
  }
  if (!active_takes(bytes, messages)) {
    if (auto rolled = roll(bytes); !rolled) return rolled;
  }
  return begin_writing(*segments_.back(), bytes);
}

// Removes a clean checkpoint, also from the disk, before the first batch is written behind it. Otherwise the
// next start would end the log at the checkpoint. The batches behind it could later be taken for the log's
// continuation.
Result<void> SegmentLog::begin_writing(SegmentFile& active, std::size_t bytes) {
  auto opened = options_.mapped_writes ? active.open_mapped(storage_, options_.views)
                                       : active.open_for_writing(storage_);
  if (!opened) return opened;
  if (maybe_closed_on_disk_) {
    SegmentCheckpoint checkpoint = active.checkpoint();
    checkpoint.clean = false;
    if (auto written = active.write_checkpoint(checkpoint); !written) return written;
    if (auto synced = active.file()->sync(); !synced) return synced;
    closed_ = maybe_closed_on_disk_ = false;
  }
  return active.needs_reserve(bytes) ? reserve(active, bytes) : Result<void>{};
}

// Writes a checkpoint with a larger reservation. The checkpoint's end is the last synced end, so that losing
// a slot loses nothing durable. A mapped log is not synced: there the checkpoint has the log's end, and is
// valid in this boot only.
Result<void> SegmentLog::reserve(SegmentFile& active, std::size_t bytes) {
  const BootId boot{options_.mapped_writes ? storage_.boot_id() : 0};
  SegmentCheckpoint checkpoint = checkpoint_at(boot == BootId{} ? active.synced_point : active.seal());
  checkpoint.boot = boot;
  checkpoint.reserved = std::max(checkpoint.end_position + checkpoint_reserve_bytes,
                                 active.end_position() + bytes + checkpoint_interval_bytes);
  checkpoint.reserved = std::min(checkpoint.reserved, active.usable_bytes());
  return active.write_checkpoint(checkpoint);
}

AppendOutcome SegmentLog::outcome_of(const Error& error) {
  last_error_ = error;
  return error.code == ErrorCode::no_space ? AppendOutcome::no_space : AppendOutcome::failed;
}

bool SegmentLog::fits_capacity(std::size_t bytes, std::uint64_t messages) const {
  if (stored_bytes_ == 0) return true;
  const std::uint64_t kept = distance(first_offset(), next_);
  return (options_.capacity_bytes == 0 || stored_bytes_ + bytes <= options_.capacity_bytes) &&
         (options_.capacity_messages == 0 || kept + messages <= options_.capacity_messages);
}

bool SegmentLog::active_takes(std::size_t bytes, std::uint64_t messages) const {
  if (segments_.empty() || segments_.back()->sealed || !segments_.back()->has_room(bytes)) return false;
  const SegmentFile& active = *segments_.back();
  if (active.header().key_id != key_id()) return false;  // the log encrypts with another key now
  return options_.segment_messages_max == 0 || active.empty() ||
         distance(active.first_offset(), active.end_offset()) + messages <= options_.segment_messages_max;
}

std::uint64_t SegmentLog::messages_left() const {
  if (options_.segment_messages_max == 0) return ~std::uint64_t{0};
  if (segments_.empty() || segments_.back()->sealed) return options_.segment_messages_max;
  const std::uint64_t there = distance(segments_.back()->first_offset(), segments_.back()->end_offset());
  return options_.segment_messages_max - std::min(there, options_.segment_messages_max);
}

Result<void> SegmentLog::make_directory() {
  if (directory_made_) return {};
  if (auto made = storage_.make_directory(options_.directory); !made) return made;
  parent_unsynced_ = true;
  directory_made_ = true;
  return {};
}

Result<PreparedSegment> SegmentLog::take_prepared(std::size_t batch_bytes, NewSegment size) {
  if (prepared_ && segment_header_bytes + batch_bytes <= prepared_->header.file_bytes) {
    PreparedSegment taken = std::move(*prepared_);
    prepared_.reset();
    waits_for_space_ = false;
    return taken;
  }
  const std::string path = options_.directory + "/roll" + prepared_suffix;
  const bool smallest = size == NewSegment::smallest;
  const std::uint64_t bytes = smallest ? segment_file_bytes_min : next_segment_bytes(batch_bytes);
  auto bound = SpaceBound::disk;
  const SpaceWanted wanted{.free_bytes_floor = options_.disk_free_floor_bytes,
                           .log_bytes = stored_bytes_,
                           .leaves_room = options_.leaves_others_room,
                           .beyond_bounds = smallest,
                           .bound = &bound,
                           .batch_bytes = batch_bytes};
  const auto prepare = [&] {
    return pool_.prepare(path, bytes, incarnation_, wanted, new_bytes(), key_id(), RecycledFile::stays,
                         batch_mask_);
  };
  auto made = prepare();
  const bool waits = !made && made.error().code == ErrorCode::no_space;
  if (waits && !retired_.empty() && !jobs_->is_out && retire_now()) made = prepare();
  note_wait(made, bound);
  return made;
}

void SegmentLog::note_wait(const Result<PreparedSegment>& made, SpaceBound bound) {
  const bool waits = !made && made.error().code == ErrorCode::no_space;
  if (!std::exchange(waits_for_space_, waits) && waits) pool_.note_wait(bound);
}

// Begins a new segment at next_. Its header and name reach the disk with the next sync; until then nothing in
// the segment is durable either.
Result<void> SegmentLog::roll(std::size_t batch_bytes, NewSegment size) {
  if (auto made = make_directory(); !made) return made;
  if (auto named = give_name(); !named) return named;
  const bool was_prepared = prepared_.has_value();
  auto prepared = take_prepared(batch_bytes, size);
  if (!prepared) return prepared.error();
  SegmentHeader header = prepared->header;
  header.first_offset = next_;
  header.key_id = key_id();
  if (!segments_.empty() && segments_.back()->empty())
    header.gap_begin = segments_.back()->header().gap_begin;
  const std::string path = options_.directory + "/" + segment_name(next_);
  if (auto mapped = map_prepared(*prepared); !mapped) {
    static_cast<void>(storage_.unlink(prepared->path));
    return mapped;
  }
  const SegmentPage page = encode_segment_header(header);
  Result<void> done;
  if (prepared->mapping != nullptr) {
    std::memcpy(prepared->mapping->data(), page.data(), page.size());
  } else {
    done = write_all(*prepared->file, page, 0);
  }
  // The new file replaces an empty segment of the same name, which may be the only record of next_ on disk.
  const bool replaces = !segments_.empty() && segments_.back()->empty();
  if (done && replaces) done = prepared->file->sync();
  const bool name_later = was_prepared && !prepared_ && options_.prefault && !replaces;
  if (done && name_later) {
    name_ = std::make_shared<PendingName>(prepared->path, path);
    last_begun_ = {};
  } else if (done) {
    done = storage_.rename(prepared->path, path);
  }
  if (!done) {
    static_cast<void>(storage_.unlink(prepared->path));
    return done;
  }
  // A replaced empty segment stays in the chain: its readers find the new segment behind it.
  const std::shared_ptr<SegmentNode> before = segments_.empty() ? nullptr : segments_.back()->node();
  const Timestamp written = segments_.empty() ? Timestamp{} : segments_.back()->written();
  if (replaces) {
    forget_view(*segments_.back());
    segments_.pop_back();
  } else if (!segments_.empty()) {
    seal_for_this_boot(*segments_.back());
  }
  segments_.push_back(
      std::make_unique<SegmentFile>(path, header, header.file_bytes, std::move(prepared->file)));
  segments_.back()->write_through(std::move(prepared->mapping));
  segments_.back()->begun_here = true;
  segments_.back()->new_from = prepared->new_from;
  segments_.back()->begin_after(written);
  publish(*segments_.back(), before.get());
  ++rolls_;
  closed_ = maybe_closed_on_disk_ = false;
  rest_full_segments();
  return {};
}

// Renames the active segment if no disk job has done so yet. Called before the next segment begins, because
// only one may be without its name.
Result<void> SegmentLog::give_name() {
  return name_ != nullptr ? name_->give(storage_) : Result<void>{};
}

// Makes the pages of a small file present immediately, which costs half as much as a fault for each page. In
// a large file the writer would stop for too long.
Result<void> SegmentLog::map_prepared(PreparedSegment& prepared) {
  if (!options_.mapped_writes || prepared.mapping != nullptr) return {};
  make_room_to_map(prepared.header.file_bytes);
  auto mapped = prepared.file->map_writable(prepared.header.file_bytes);
  if (!mapped) return mapped.error();
  prepared.mapping = counted_by(options_.views, std::move(*mapped));
  const bool small = prepared.header.file_bytes <= segment_header_bytes + prefault_by_writer_max;
  if (options_.prefault && small) prepared.mapping->prefault();
  return {};
}

// Makes space for a mapping under the cap. Unmaps in this order: mappings that wait for a job, the pool's
// mappings, views without a reader, and the active segment, which is about to be full. If the active segment
// continues after all, it is mapped again.
void SegmentLog::make_room_to_map(std::uint64_t bytes) {
  if (options_.views == nullptr || options_.views->has_room(bytes)) return;
  unmap_.clear();
  if (!options_.views->has_room(bytes)) pool_.unmap();
  options_.views->make_room(bytes);
  if (options_.views->has_room(bytes) || segments_.empty()) return;
  segments_.back()->stop_writing();
}

// Links the segment behind its predecessor, where readers on other threads find it.
void SegmentLog::publish(SegmentFile& segment, SegmentNode* before) {
  if (options_.views == nullptr) return;
  segment.publish_to(std::make_shared<SegmentNode>(segment.path(), segment.header(), segment.usable_bytes(),
                                                   segment.checked_from()));
  if (segment.empty() && !segment.sealed) segment.node()->index_from_the_start();
  if (before != nullptr) before->set_next(segment.node());
}

// Leaves the mapping to the next job. Mappings that wait for one still count, so above the cap it is unmapped
// here.
void SegmentLog::stop_writing(SegmentFile& segment) {
  auto mapping = segment.stop_writing();
  if (mapping != nullptr && !is_above_cap()) unmap_.push_back(std::move(mapping));
}

bool SegmentLog::is_above_cap() const {
  return options_.views != nullptr && options_.views->is_above_cap();
}

// Writes a seal that is valid in this boot only. If the process ends before the next sync, and the machine
// continues, the seal saves a recovery the scan.
void SegmentLog::seal_for_this_boot(SegmentFile& segment) {
  segment.sealed = true;
  // Opens a segment that this process has not written to. On failure a later sync seals it, if the file is
  // open then.
  static_cast<void>(segment.open_for_writing(storage_));
  SegmentSeal seal = segment.seal();
  seal.boot = {storage_.boot_id()};
  const bool write = !segment.seal_written && segment.file() != nullptr && seal.boot != BootId{};
  if (write) static_cast<void>(segment.write_seal(seal));
  const bool keep = options_.views != nullptr && options_.views->may_keep(segment.usable_bytes());
  if (!keep) stop_writing(segment);
}

}  // namespace lightq::log
