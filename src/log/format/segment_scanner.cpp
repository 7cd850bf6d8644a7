/// Finds and checks the batches in a segment file, which it reads with pread. Layer: log.
#include "log/format/segment_scanner.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "log/newer_format.hpp"

namespace lightq::log {

namespace {

constexpr std::uint64_t header_window_bytes = 16 * limits::KiB;
constexpr std::uint64_t block_bytes = 4096;

std::string_view magic_text() {
  static const std::array<char, 4> text = {'L', 'Q', 'B', '1'};
  return {text.data(), text.size()};
}

}  // namespace

Error NewerBatch::error(const std::string& path) const {
  return newer_format(path + ": the batch at position " + std::to_string(position) + " is of version " +
                      std::to_string(version) + ", with codec " + std::to_string(codec) + " and flags " +
                      hexadecimal(flags) + ", which this version does not know");
}

ByteView SegmentScanner::bytes_at(std::uint64_t position, std::uint64_t needed, std::uint64_t wanted) {
  if (position >= limit_) return {};
  const std::uint64_t there = std::min(needed, limit_ - position);
  if (position < window_position_ || position + there > window_position_ + window_bytes_) {
    load(position, std::min(std::max(needed, wanted), limit_ - position));
  }
  return {window_.get() + (position - window_position_), window_bytes_ - (position - window_position_)};
}

void SegmentScanner::load(std::uint64_t position, std::uint64_t bytes) {
  if (bytes > window_capacity_ || window_capacity_ > 4 * std::max(bytes, body_window_bytes_)) {
    window_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    window_capacity_ = bytes;
  }
  window_position_ = position;
  window_bytes_ = bytes;
  const std::span<std::byte> window(window_.get(), bytes);
  const auto came = read_all(file_, window, position);
  if (came && *came == bytes) return;
  if (came) {  // the file is shorter than expected: the rest counts as zeros
    std::fill(window.begin() + static_cast<std::ptrdiff_t>(*came), window.end(), std::byte{0});
    return;
  }
  for (std::uint64_t at = 0; at < bytes; at += block_bytes) {
    const auto block = window.subspan(at, std::min(block_bytes, bytes - at));
    const auto part = read_all(file_, block, position + at);
    const std::size_t good = part ? *part : 0;
    if (!part) {
      unreadable_.push_back({position + at, position + at + block.size()});
      if (!read_error_) read_error_ = part.error();
    }
    std::fill(block.begin() + static_cast<std::ptrdiff_t>(good), block.end(), std::byte{0});
  }
}

std::optional<std::uint64_t> SegmentScanner::unreadable(std::uint64_t begin, std::uint64_t end) const {
  std::optional<std::uint64_t> first;
  for (const Range& range : unreadable_) {
    if (end <= range.begin || range.end <= begin) continue;
    first = std::min(first.value_or(end), std::max(begin, range.begin));
  }
  return first;
}

std::optional<BatchFault> SegmentScanner::check_header(ByteView available) const {
  return BatchView::check_stored_header(available, mask_of(available));
}

std::uint32_t SegmentScanner::mask_of(ByteView header) const {
  return marks_.mask ? *marks_.mask : BatchView::mask_of(header);
}

std::optional<ScannedBatch> SegmentScanner::header_at(std::uint64_t position) {
  const ByteView header = bytes_at(position, batch_layout::header_bytes, header_window_bytes);
  // The check reads only the header. The size that it gets is the limit for the batch's length.
  const ByteView available(header.data(), limit_ - position);
  if (header.size() < batch_layout::header_bytes || check_header(available).has_value()) return std::nullopt;
  const BatchView batch = BatchView::trusted(header.data());
  if (!marks_.epochs.contain(batch.segment_epoch())) return std::nullopt;
  if (batch.end_offset() < batch.base_offset()) return std::nullopt;
  claimed_end_ = std::max(claimed_end_, position + batch.total_bytes());
  return ScannedBatch{position,           batch.total_bytes(), batch.base_offset(),
                      batch.end_offset(), batch.append_time(), batch.segment_epoch(),
                      mask_of(available)};
}

std::optional<ScannedBatch> SegmentScanner::batch_at(std::uint64_t position) {
  const ByteView ahead = bytes_at(position, batch_layout::header_bytes, body_window_bytes_);
  if (ahead.size() < batch_layout::header_bytes) return std::nullopt;
  auto batch = header_at(position);
  if (!batch) return std::nullopt;
  const ByteView bytes = bytes_at(position, batch->total_bytes, body_window_bytes_);
  const BatchView view = BatchView::trusted(bytes.data());
  if (view.check_body().has_value()) return std::nullopt;
  return batch;
}

// For an unknown version, trusts the header's checksum, length, offset and epoch. If the mask is lost, that
// checksum says nothing, and torn bytes must not be taken for a newer version's batch.
std::optional<BatchView> SegmentScanner::newer_header_at(std::uint64_t position, Offset lowest) {
  const ByteView header = bytes_at(position, batch_layout::header_bytes, header_window_bytes);
  if (newer_ || header.size() < batch_layout::header_bytes) return std::nullopt;
  const ByteView available(header.data(), limit_ - position);
  if (BatchView::check_stored_header(available, marks_.mask.value_or(0)) != BatchFault::bad_version)
    return std::nullopt;
  const BatchView batch = BatchView::trusted(header.data());
  const bool is_ours = marks_.epochs.contain(batch.segment_epoch()) && lowest <= batch.base_offset();
  return is_ours ? std::optional(batch) : std::nullopt;
}

void SegmentScanner::look_for_newer(std::uint64_t position, Offset lowest) {
  if (const auto batch = newer_header_at(position, lowest))
    newer_ = {position, batch->version(), static_cast<std::uint8_t>(batch->codec()), batch->flags()};
}

// Accepts a newer version's batch only at a position where a batch has to begin. The search below also reads
// the bytes of messages, and a client could store a message that looks like such a batch.
std::optional<ScannedBatch> SegmentScanner::resume_after(std::uint64_t position, Offset lowest) {
  look_for_newer(position, lowest);
  // A sound header over a damaged body tells where the next batch is. That position is tried first, because
  // an apparent batch before it may be part of a message.
  if (const auto damaged = header_at(position)) {
    look_for_newer(damaged->end_position(), damaged->end);
    const auto next = batch_at(damaged->end_position());
    if (next && next->base == damaged->end && lowest <= next->base) return next;
  }
  for (std::uint64_t at = position + 1; at < limit_;) {
    const ByteView ahead = bytes_at(at, magic_text().size(), body_window_bytes_);
    const std::size_t found = as_text(ahead).find(magic_text());
    if (found == std::string_view::npos) {
      if (ahead.size() < magic_text().size()) break;
      at += ahead.size() - (magic_text().size() - 1);
      continue;
    }
    at += found;
    const auto header = header_at(at);
    if (header && lowest <= header->base) {
      if (const auto batch = batch_at(at)) return batch;
    }
    ++at;
  }
  return std::nullopt;
}

std::optional<ScannedBatch> SegmentScanner::resume_at(std::uint64_t position, Offset lowest) {
  const auto here = batch_at(position);
  const auto next = resume_after(position, lowest);
  const bool ahead = here && lowest <= here->base && (!next || here->base <= next->base);
  return ahead ? here : next;
}

}  // namespace lightq::log
