/// Opens and maps the file of a segment. Layer: log.
#include "log/segment/segment_bytes.hpp"

namespace lightq::log {

Result<void> SegmentBytes::open(Storage& storage, OpenMode mode) {
  if (file_ != nullptr) return {};
  auto opened = storage.open(path_, mode);
  if (!opened) return opened.error();
  file_ = std::move(*opened);
  return {};
}

Result<void> SegmentBytes::map_for_writing(SegmentViews* views) {
  auto mapped = file_->map_writable(usable_bytes_);
  if (!mapped) return mapped.error();
  writable_ = counted_by(views, std::move(*mapped));
  return {};
}

Result<void> SegmentBytes::map_for_reading(Storage& storage, OpenMode mode) {
  if (mapping_ != nullptr) return {};
  const bool was_open = file_ != nullptr;
  if (const auto opened = open(storage, mode); !opened) return opened;
  auto mapped = file_->map(usable_bytes_);
  if (!mapped && !was_open) file_.reset();
  if (!mapped) return mapped.error();
  mapping_ = std::move(*mapped);
  return {};
}

}  // namespace lightq::log
