/// Checks that a segment can be decrypted, or is encrypted at all. Layer: log.
#include "log/format/segment_key.hpp"

#include <cstddef>
#include <optional>
#include <vector>

#include "log/format/segment_scanner.hpp"

namespace lightq::log {

namespace {

/// Iterates over the sound batches of a segment, skipping all other bytes.
class SoundBatches {
 public:
  explicit SoundBatches(const KeyedSegment& segment)
      : scanner_(segment.file, BatchMarks::of(segment.header), segment.usable_bytes),
        lowest_(segment.header.first_offset) {}
  std::optional<BatchView> next() {
    auto found = scanner_.batch_at(position_);
    if (!found || found->base < lowest_) found = scanner_.resume_after(position_, lowest_);
    if (!found) return std::nullopt;
    position_ = found->end_position();
    lowest_ = found->end;
    return BatchView::trusted(
        scanner_.bytes_at(found->position, found->total_bytes, found->total_bytes).data());
  }

 private:
  SegmentScanner scanner_;
  std::uint64_t position_ = segment_header_bytes;
  Offset lowest_;
};

bool decrypts_any(const KeyedSegment& segment, BatchCipher& cipher) {
  SoundBatches batches(segment);
  bool any = false;
  std::vector<std::byte> plain;
  for (auto batch = batches.next(); batch; batch = batches.next()) {
    if (!batch->is_encrypted()) continue;
    any = true;
    plain.resize(batch->total_bytes() - encrypted_layout::more_bytes);
    if (cipher.decrypt(*batch, segment.header.key_id, plain)) return true;
  }
  return !any;
}

}  // namespace

Result<void> check_segment_key(const KeyedSegment& segment, BatchCipher* cipher) {
  const std::uint64_t key_id = segment.header.key_id;
  if (key_id == 0) return {};
  if (cipher == nullptr) {
    return Error{ErrorCode::not_supported,
                 segment.path + " is encrypted (key id " + key_id_text(key_id) +
                     "), but the log is opened without encryption; nothing was changed"};
  }
  if (!cipher->knows(key_id)) return no_key(segment.path, key_id);
  if (key_id != key_id_unknown || decrypts_any(segment, *cipher)) return {};
  return no_key(segment.path, key_id);
}

Result<void> check_segment_encrypted(const KeyedSegment& segment) {
  if (segment.header.key_id != 0 || !SoundBatches(segment).next()) return {};
  return Error{ErrorCode::corrupt, segment.path +
                                       " is not encrypted, but its log is: the file is older than the "
                                       "encryption, or somebody put it there; nothing was changed"};
}

}  // namespace lightq::log
