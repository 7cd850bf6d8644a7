/// Records a failed sync for the next process, and writes the affected bytes again. Layer: log.
#include "log/segment/failed_sync.hpp"

#include <algorithm>
#include <vector>

namespace lightq::log {

namespace {

constexpr std::uint64_t block_bytes = 1 * limits::MiB;

Result<void> write_again(File& file, std::uint64_t begin, std::uint64_t end) {
  std::vector<std::byte> block(std::min(block_bytes, end - std::min(begin, end)));
  for (std::uint64_t at = begin; at < end; at += block.size()) {
    const auto part = std::span(block).first(std::min<std::uint64_t>(block.size(), end - at));
    const auto came = read_all(file, part, at);
    if (!came) return came.error();
    if (auto written = write_all(file, part.first(*came), at); !written) return written;
  }
  return {};
}

}  // namespace

void mark_failed_sync(const std::string& directory, Storage& storage) {
  static_cast<void>(storage.open(directory + "/" + failed_sync_name, OpenMode::create));
}

bool has_failed_sync(const std::string& directory, Storage& storage) {
  return may_exist(directory + "/" + failed_sync_name, storage);
}

void clear_failed_sync(const std::string& directory, Storage& storage) {
  static_cast<void>(storage.unlink(directory + "/" + failed_sync_name));
}

Result<void> write_again(const std::deque<std::unique_ptr<SegmentFile>>& segments) {
  for (const auto& segment : segments) {
    if (segment->file() == nullptr || segment->seal_written) continue;
    const bool last = segment == segments.back();
    const std::uint64_t end = last ? segment->usable_bytes() : segment->end_position();
    auto done = write_again(*segment->file(), 0, segment_header_bytes);
    if (done) done = write_again(*segment->file(), segment->synced_point.end_position, end);
    if (done) done = segment->file()->sync();
    if (!done) return done;
  }
  return {};
}

}  // namespace lightq::log
