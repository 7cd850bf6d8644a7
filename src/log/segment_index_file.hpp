/// A sealed segment's index, beside it on disk: `00000000000000000042.idx`. Layer: log. Byte by byte:
/// docs/log_format.md, "Segment index".
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "log/segment_format.hpp"
#include "log/segment_index.hpp"
#include "log/storage.hpp"

namespace lightq::log {

/// What an index file must fit: the sealed segment as its own first page describes it.
struct IndexedSegment {
  std::uint32_t epoch = 0;
  std::uint64_t incarnation = 0;
  Offset first_offset;
  Offset end_offset;
  std::uint64_t end_position = 0;
  std::uint32_t batch_mask = 0;
};

/// Loads, stores and makes anew. Losing an index file costs the time to read the segment's batch headers, and
/// nothing else; so nothing here is synced. Holds nothing; any thread.
class SegmentIndexFile {
 public:
  using LoadResult = Result<std::unique_ptr<SegmentIndex>>;

  /// The index of `segment` in the file at `path`. Whatever is wrong with it, there is none: foreign_format,
  /// corrupt (also: of another segment), io_error (is_missing() if there is no file), with a sentence that
  /// says why.
  static LoadResult load(Storage& storage, const std::string& path, const IndexedSegment& segment);
  /// Writes it under another name, then renames. Errors: io_error, no_space; what was there before is still
  /// there then.
  static Result<void> store(Storage& storage, const std::string& path, const IndexedSegment& segment,
                            const SegmentIndex& index);
  /// Makes it from the batch headers in the segment's file; damage is jumped over. Null where not all of the
  /// file could be read.
  static std::unique_ptr<SegmentIndex> rebuild(File& file, const IndexedSegment& segment);

  /// The bytes of the file, and back; for load and store, and tests. `name` is for the errors' sentences.
  static std::vector<std::byte> encode(const IndexedSegment& segment, const SegmentIndex& index);
  static LoadResult decode(ByteView bytes, const IndexedSegment& segment, const std::string& name);
};

/// `00000000000000000042.idx`
std::string segment_index_name(Offset first_offset);
/// The offset in an index file's name; nothing for another name.
std::optional<Offset> segment_index_name_offset(std::string_view name);

}  // namespace lightq::log
