/// Writes the marks in a segment's first page. Layer: log.
#include "log/segment/segment_marks.hpp"

namespace lightq::log {

void SegmentMarks::set_checkpoint(const SegmentCheckpoint& found, std::uint64_t next_sequence) {
  checkpoint_ = found;
  checkpoint_.sequence = next_sequence - 1;
}

Result<void> SegmentMarks::write_checkpoint(SegmentCheckpoint checkpoint) {
  checkpoint.sequence = checkpoint_.sequence + 1;
  const auto written = bytes_.write(encode_segment_checkpoint(checkpoint, header_),
                                    segment_checkpoint_position(checkpoint.sequence));
  if (written) checkpoint_ = checkpoint;
  return written;
}

Result<void> SegmentMarks::write_seal(const SegmentSeal& seal) {
  return bytes_.write(encode_segment_seal(seal, header_), segment_seal_position);
}

}  // namespace lightq::log
