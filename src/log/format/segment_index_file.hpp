/// The index of a sealed segment, stored in a file beside it: `00000000000000000042.idx`. Layer: log.
/// docs/log_format.md, "Segment index", specifies every byte.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "log/format/segment_format.hpp"
#include "log/format/segment_index.hpp"
#include "log/storage/storage.hpp"

namespace lightq::log {

/// The sealed segment that an index file has to match, as the segment's own first page describes it.
struct IndexedSegment {
  std::uint32_t epoch = 0;
  std::uint64_t incarnation = 0;
  Offset first_offset;
  Offset end_offset;
  std::uint64_t end_position = 0;
  std::uint32_t batch_mask = 0;
};

/// Loads, stores and rebuilds index files. Stateless; any thread. Nothing is synced: a lost index file costs
/// only the time to read the segment's batch headers again.
class SegmentIndexFile {
 public:
  using LoadResult = Result<std::unique_ptr<SegmentIndex>>;

  /// Returns the index of `segment` from the file at `path`. Errors: foreign_format, corrupt (also for the
  /// index of another segment), io_error (is_missing() if there is no file), each with the reason.
  static LoadResult load(Storage& storage, const std::string& path, const IndexedSegment& segment);
  /// Writes the index under a temporary name, then renames it. Errors: io_error, no_space; an earlier file at
  /// `path` stays then.
  static Result<void> store(Storage& storage, const std::string& path, const IndexedSegment& segment,
                            const SegmentIndex& index);
  /// Rebuilds the index from the batch headers in the segment's file, skipping damage. Returns null if part
  /// of the file could not be read.
  static std::unique_ptr<SegmentIndex> rebuild(File& file, const IndexedSegment& segment);

  /// Encodes the file's bytes, for `store` and tests.
  static std::vector<std::byte> encode(const IndexedSegment& segment, const SegmentIndex& index);
  /// Decodes the file's bytes, for `load` and tests. `name` appears in error texts. Errors: foreign_format,
  /// corrupt.
  static LoadResult decode(ByteView bytes, const IndexedSegment& segment, const std::string& name);
};

/// Returns the name of an index file, for example `00000000000000000042.idx`.
std::string segment_index_name(Offset first_offset);
/// Returns the offset in an index file's name, or nothing for another name.
std::optional<Offset> segment_index_name_offset(std::string_view name);

}  // namespace lightq::log
