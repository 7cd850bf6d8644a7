/// Maps the segments of a log for writing. Layer: log.
#include "log/segment_log/writer_mappings.hpp"

#include <lightq/base/limits.hpp>

namespace lightq::log {

namespace {

// The writer does not make the pages of larger segments present.
constexpr std::uint64_t prefault_by_writer_max = limits::MiB;

}  // namespace

// Makes the pages of a small file present immediately, which costs half as much as a fault for each page. In
// a large file the writer would stop for too long.
Result<void> WriterMappings::map(PreparedSegment& prepared, SegmentFile* active) {
  if (!options_.mapped_writes || prepared.mapping != nullptr) return {};
  make_room(prepared.header.file_bytes, active);
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
void WriterMappings::make_room(std::uint64_t bytes, SegmentFile* active) {
  if (options_.views == nullptr || options_.views->has_room(bytes)) return;
  unmap_.clear();
  if (!options_.views->has_room(bytes)) pool_.unmap();
  options_.views->make_room(bytes);
  if (options_.views->has_room(bytes) || active == nullptr) return;
  active->stop_writing();
}

// Mappings that wait for a job still count, so above the cap the segment is unmapped here.
void WriterMappings::stop_writing(SegmentFile& segment) {
  auto mapping = segment.stop_writing();
  const bool above_cap = options_.views != nullptr && options_.views->is_above_cap();
  if (mapping != nullptr && !above_cap) unmap_.push_back(std::move(mapping));
}

}  // namespace lightq::log
