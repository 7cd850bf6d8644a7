/// Finds and renames a segment that was begun without its name. Layer: log.
#include "log/format/unnamed_segment.hpp"

#include <algorithm>

#include "log/format/open_batch.hpp"
#include "log/format/segment_scanner.hpp"

namespace lightq::log {

namespace {

// Bytes from before the file was recycled have another epoch, and are no messages of this segment.
Result<bool> holds_messages(File& file, const SegmentPage& page, const SegmentHeader& header, BootId boot) {
  if (const auto mark = decode_open_mark(page, header, boot);
      mark && mark->position == segment_header_bytes && mark->base == header.first_offset) {
    return true;
  }
  SegmentScanner scanner(file, BatchMarks::of(header), header.file_bytes);
  if (scanner.resume_at(segment_header_bytes, header.first_offset)) return true;
  if (scanner.read_error()) return *scanner.read_error();
  return false;
}

}  // namespace

Result<void> PendingName::give(Storage& storage) {
  const std::lock_guard lock(mutex_);
  if (is_given()) return {};
  if (auto renamed = storage.rename(from_, to_); !renamed) return renamed;
  given_.store(true, std::memory_order_release);
  return {};
}

// A file that cannot be opened or read now may contain messages, so that is an error: a caller that got
// nothing would remove the file.
Result<std::optional<Offset>> unnamed_segment(const std::string& directory, const std::vector<Offset>& names,
                                              Storage& storage) {
  const std::optional<Offset> none;
  const auto file = storage.open(directory + "/" + next_prepared_name, OpenMode::read_only);
  if (!file && !is_missing(file.error())) return file.error();
  if (!file) return none;
  SegmentPage page{};
  if (const auto came = read_all(**file, page, 0); !came) return came.error();
  if (is_newer_segment(page)) return foreign_segment(directory + "/" + next_prepared_name, page);
  const auto header = decode_segment_header(page).header;
  if (!header || header->first_offset == offset_not_yet_known) return none;
  const bool is_behind =
      std::all_of(names.begin(), names.end(), [&](Offset name) { return name < header->first_offset; });
  if (!is_behind) return none;
  const auto holds = holds_messages(**file, page, *header, {storage.boot_id()});
  if (!holds) return holds.error();
  return *holds ? std::optional(header->first_offset) : none;
}

Result<void> name_unnamed_segment(const std::string& directory, const std::vector<Offset>& names,
                                  Storage& storage) {
  const auto first = unnamed_segment(directory, names, storage);
  if (!first) return first.error();
  if (!*first) return {};
  return storage.rename(directory + "/" + next_prepared_name, directory + "/" + segment_name(**first));
}

}  // namespace lightq::log
