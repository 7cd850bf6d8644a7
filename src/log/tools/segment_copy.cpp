/// Copies a range of a segment file into a new sealed one, and copies whole files. Layer: tools.
#include "log/tools/segment_copy.hpp"

#include <algorithm>
#include <cerrno>
#include <span>
#include <vector>

#include "log/saved_state/cursor_table.hpp"
#include "log/tools/segment_walk.hpp"

namespace lightq::log {

namespace {

constexpr std::uint64_t block_bytes = 1 * limits::MiB;
constexpr std::size_t page_bytes = 4096;  // a disk that fails to read one page can often read the next

/// Fills `to` from the file. Pages that are missing or cannot be read become zeros.
void read_what_can_be(File& from, std::span<std::byte> to, std::uint64_t position) {
  for (std::size_t at = 0; at < to.size(); at += page_bytes) {
    const auto page = to.subspan(at, std::min<std::size_t>(page_bytes, to.size() - at));
    const auto came = read_all(from, page, position + at);
    std::fill(page.begin() + static_cast<std::ptrdiff_t>(came ? *came : 0), page.end(), std::byte{0});
  }
}

Result<void> copy_bytes(File& from, std::uint64_t begin, std::uint64_t end, File& to, std::uint64_t position,
                        bool must_be_whole) {
  std::vector<std::byte> buffer(std::min(block_bytes, end - begin));
  for (std::uint64_t at = begin; at < end; at += block_bytes) {
    const auto block = std::span(buffer).first(std::min(block_bytes, end - at));
    const auto came = read_all(from, block, at);
    const bool whole = came && *came == block.size();
    if (!whole && must_be_whole)
      return came ? Error{ErrorCode::io_error, "a file became shorter while it was copied", EIO}
                  : came.error();
    if (!whole) read_what_can_be(from, block, at);
    if (auto written = write_all(to, block, position + (at - begin)); !written) return written;
  }
  return {};
}

/// Reads the new file back and checks every batch.
Result<void> check_copy(File& file, const SegmentCopy& copy, std::uint64_t end_position) {
  SegmentWalk walk(file, {BatchMarks::of(copy.header), segment_header_bytes, end_position,
                          copy.header.first_offset, copy.end_offset});
  auto step = walk.next();
  while (step == SegmentWalk::Step::batch) step = walk.next();
  if (step == SegmentWalk::Step::end) return {};
  return Error{ErrorCode::corrupt,
               "the copy " + copy.path + " is damaged at position " + std::to_string(walk.damage().begin) +
                   ": the disk returns other bytes at each read, or the original file is in use",
               0};
}

Result<void> fill(File& to, File* from, const SegmentCopy& copy) {
  if (auto allocated = to.allocate(copy.header.file_bytes); !allocated) return allocated;
  if (from != nullptr) {
    auto copied = copy_bytes(*from, copy.begin, copy.end, to, segment_header_bytes, copy.must_be_sound);
    if (!copied) return copied;
  }
  const std::uint64_t end_position = segment_header_bytes + (copy.end - copy.begin);
  SegmentPage page = encode_segment_header(copy.header);
  const auto seal = encode_segment_seal({end_position, copy.end_offset, copy.newest}, copy.header);
  std::copy(seal.begin(), seal.end(), page.begin() + segment_seal_position);
  if (auto written = write_all(to, page, 0); !written) return written;
  if (copy.must_be_sound) {
    if (auto checked = check_copy(to, copy, end_position); !checked) return checked;
  }
  return to.sync();
}

Result<void> write_segment(File* from, SegmentCopy& copy, Storage& storage) {
  copy.header.file_bytes = round_up_to_page(segment_header_bytes + (copy.end - copy.begin));
  auto file = storage.open(copy.path, OpenMode::create);
  if (!file) return file.error();
  Result<void> filled = fill(**file, from, copy);
  if (!filled) static_cast<void>(storage.unlink(copy.path));
  return filled;
}

}  // namespace

Result<void> write_sealed_segment(File& from, SegmentCopy copy, Storage& storage) {
  return write_segment(&from, copy, storage);
}

Result<void> write_empty_segment(SegmentCopy copy, Storage& storage) {
  copy.begin = copy.end = 0;
  return write_segment(nullptr, copy, storage);
}

Result<void> copy_file(const std::string& from, const std::string& to, Storage& storage) {
  const auto source = storage.open(from, OpenMode::read_only);
  if (!source) return source.error();
  const auto size = (*source)->size_bytes();
  if (!size) return size.error();
  auto target = storage.open(to, OpenMode::create);
  if (!target) return target.error();
  Result<void> done = (*target)->allocate(std::max<std::uint64_t>(*size, 1));
  if (done) done = copy_bytes(**source, 0, *size, **target, 0, false);
  if (done) done = (*target)->sync();
  if (!done) static_cast<void>(storage.unlink(to));
  return done;
}

// Each cursor has several copies of its position, with checksums: a concurrent write can spoil only one of
// them.
Result<void> copy_cursor_table(const std::string& from, const std::string& to, Storage& storage) {
  const std::string name = "/" + std::string(CursorTable::file_name);
  auto copied = copy_file(from + name, to + name, storage);
  if (!copied && is_missing(copied.error())) return {};
  return copied;
}

}  // namespace lightq::log
