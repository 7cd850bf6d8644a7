/// Gets the files for a log's new segments. Layer: log.
#include "log/segment_log/next_segment.hpp"

#include <algorithm>
#include <utility>

#include <lightq/base/limits.hpp>

#include "log/elapsed.hpp"

namespace lightq::log {

namespace {

constexpr Timestamp never_tried{-1'000'000};
// Wait after a failed attempt, for example on a full disk.
constexpr std::int64_t prepare_again_us = 1'000'000;

}  // namespace

SpaceWanted NextSegment::wanted() const {
  return {.free_bytes_floor = options_.disk_free_floor_bytes,
          .log_bytes = segments_.stored_bytes(),
          .leaves_room = options_.leaves_others_room};
}

Result<PreparedSegment> NextSegment::take(std::size_t batch_bytes, NewSegment size) {
  if (prepared_ && segment_header_bytes + batch_bytes <= prepared_->header.file_bytes) {
    PreparedSegment taken = std::move(*prepared_);
    prepared_.reset();
    waits_for_space_ = false;
    return taken;
  }
  const std::string path = options_.directory + "/roll" + prepared_suffix;
  const bool smallest = size == NewSegment::smallest;
  const std::uint64_t bytes = smallest ? segment_file_bytes_min : next_bytes(batch_bytes);
  auto bound = SpaceBound::disk;
  SpaceWanted space = wanted();
  space.beyond_bounds = smallest;
  space.bound = &bound;
  space.batch_bytes = batch_bytes;
  const auto prepare = [&] {
    return pool_.prepare(path, bytes, identity_.incarnation, space, new_bytes(), key_id(),
                         RecycledFile::stays, identity_.batch_mask);
  };
  auto made = prepare();
  const bool waits = !made && made.error().code == ErrorCode::no_space;
  if (waits && !dropped_.empty() && !sync_.job_state()->is_out && sync_.retire_now()) made = prepare();
  note_wait(made, bound);
  return made;
}

void NextSegment::note_wait(const Result<PreparedSegment>& made, SpaceBound bound) {
  const bool waits = !made && made.error().code == ErrorCode::no_space;
  if (!std::exchange(waits_for_space_, waits) && waits) pool_.note_wait(bound);
}

// Four times the last file's size up to 1 MiB, then twice, up to segment_bytes. So a log that grows soon has
// few small files. A file is larger only for a batch that needs it.
std::uint64_t NextSegment::next_bytes(std::size_t batch_bytes) const {
  constexpr std::uint64_t small = 1 * limits::MiB;
  std::uint64_t bytes = options_.first_segment_bytes;
  if (!segments_.empty()) {
    const std::uint64_t last = segments_.active().header().file_bytes;
    bytes = std::max(bytes, last < small ? std::min(last * 4, small) : last * 2);
  }
  bytes = std::min(bytes, options_.segment_bytes);
  const std::uint64_t needed = round_up_to_page(segment_header_bytes + batch_bytes);
  while (bytes < needed && bytes < options_.segment_bytes)
    bytes = std::min(bytes * 2, options_.segment_bytes);
  return round_up_to_page(std::max(bytes, needed));
}

bool NextSegment::is_due(Timestamp now) const {
  if (segments_.empty() || prepared_) return false;
  const SegmentFile& active = segments_.active();
  return !active.sealed && (options_.prefault || active.end_position() > active.usable_bytes() / 2) &&
         has_passed(last_try_, prepare_again_us, now);
}

void NextSegment::add_to(SegmentWork& work, Timestamp now) {
  last_try_ = now;
  work.prepare_bytes = next_bytes(0);
  work.prepare_new = new_bytes();
  work.prepare_path = options_.directory + "/" + next_prepared_name;
  if (options_.mapped_writes && options_.prefault) work.map_prepared = options_.views;
  work.incarnation = identity_.incarnation;
  work.key_id = key_id();
  work.batch_mask = identity_.batch_mask;
  work.prepare_space = wanted();
}

void NextSegment::note_prepared(std::optional<PreparedSegment> prepared) {
  if (!prepared) return;
  prepared_ = std::move(prepared);
  last_try_ = never_tried;
}

}  // namespace lightq::log
