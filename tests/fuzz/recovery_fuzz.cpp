/// Fuzz target: opens a segment file of any bytes, reads it from end to end, and appends to it. Only batches
/// that pass their checks may be returned, the appended message must be returned, and opening again must find
/// the same log.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "fuzz/mended_segment.hpp"
#include "log/segment_log/segment_log.hpp"
#include "support/batches.hpp"
#include "support/faulty_storage.hpp"

namespace {

using namespace lightq;

void require(bool condition) {
  if (!condition) std::abort();
}

/// Reads everything. Returns the number of messages.
std::uint64_t read_all_messages(log::Log& log) {
  std::uint64_t messages = 0;
  for (log::ReadPosition place;;) {
    const log::ReadResult result = log.read(place);
    if (result.outcome == log::ReadOutcome::end) return messages;
    const Offset next = result.outcome == log::ReadOutcome::batch ? result.batch.end_offset() : result.next;
    require(place.offset < next);
    if (result.outcome == log::ReadOutcome::batch) {
      require(!BatchView::check_header(result.batch.bytes(), BatchView::mask_of(result.batch.bytes())));
      require(!result.batch.check_body());
      messages += result.batch.record_count();
    }
    place.offset = next;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1 || size > 60'000) return 0;
  test::FaultyStorage storage;
  log::SegmentPool pool({"/pool"}, storage);
  log::SegmentLogOptions options;
  options.directory = "/log";
  options.segment_bytes = limits::segment_bytes_min;
  const std::string path = "/log/" + log::segment_name({0});
  require(storage.open(path, log::OpenMode::create).ok());
  auto& file = storage.bytes_of(path);
  const bool mended = (data[0] & 1) != 0;
  file.assign(mended ? log::segment_header_bytes : 0, std::byte{0});
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  file.insert(file.end(), bytes + 1, bytes + size);
  if (mended) test::mend_segment(file, {0});

  auto opened = log::SegmentLog::open(options, storage, pool, Timestamp{1});
  if (!opened) return 0;
  const std::uint64_t messages = read_all_messages(**opened);
  const Offset next = (*opened)->next_offset();
  opened->reset();
  opened = log::SegmentLog::open(options, storage, pool, Timestamp{1});
  require(opened.ok() && (*opened)->next_offset() == next && read_all_messages(**opened) == messages);
  auto batch = test::make_batch({"one more"});
  const auto appended = (*opened)->append(batch, Timestamp{2});
  if (next.value > limits::offset_max - limits::batch_records_max) {  // the file has used up its offsets
    require(appended.outcome == log::AppendOutcome::failed && read_all_messages(**opened) == messages);
    return 0;
  }
  require(appended.outcome == log::AppendOutcome::appended && appended.base == next);
  require(read_all_messages(**opened) == messages + 1);
  return 0;
}
