/// Fuzz target: a segment file of any bytes is opened, read from end to end, and appended to. Whatever was
/// there, only batches that pass their checks come out, the appended message comes back, and opening again
/// finds the same log.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "log/segment_log.hpp"
#include "support/batches.hpp"
#include "support/faulty_storage.hpp"

namespace {

using namespace lightq;

void require(bool condition) {
  if (!condition) std::abort();
}

/// Reads everything; how many messages there were.
std::uint64_t read_all_messages(log::Log& log) {
  std::uint64_t messages = 0;
  for (log::Place place;;) {
    const log::ReadResult result = log.read(place);
    if (result.outcome == log::ReadOutcome::end) return messages;
    const Offset next = result.outcome == log::ReadOutcome::batch ? result.batch.end_offset() : result.next;
    require(place.offset < next);
    if (result.outcome == log::ReadOutcome::batch) {
      require(!BatchView::check(result.batch.bytes()).has_value());
      messages += result.batch.record_count();
    }
    place.offset = next;
  }
}

/// Makes checksums right where the input has a header, so that what lies behind them is reached too.
void mend(std::vector<std::byte>& file) {
  const std::size_t first = log::segment_header_bytes;
  const auto header = log::encode_segment_header({7, {0}, 1, file.size()});
  std::copy_n(header.begin(), std::min(header.size(), file.size()), file.begin());
  for (std::size_t at = first; at + batch_layout::header_bytes <= file.size();) {
    const std::size_t left = file.size() - at;
    std::byte* batch = file.data() + at;
    if (std::to_integer<int>(batch[0]) % 8 == 0) return;  // from here on as it came
    store_little_endian(batch, batch_layout::magic_value);
    std::fill_n(batch + batch_layout::version, 4, std::byte{0});
    store_little_endian(batch + batch_layout::version, batch_layout::version_value);
    const std::uint32_t total = static_cast<std::uint32_t>(
        batch_layout::header_bytes +
        load_little_endian<std::uint16_t>(batch + batch_layout::total_bytes) % (left + 8));
    store_little_endian(batch + batch_layout::total_bytes, total);
    if (total > left) return;
    store_little_endian(batch + batch_layout::body_crc, batch_body_crc({batch, total}));
    store_little_endian(batch + batch_layout::header_crc, batch_header_crc(batch));
    at += total;
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
  if (mended) mend(file);

  auto opened = log::SegmentLog::open(options, storage, pool, Timestamp{1});
  if (!opened) return 0;
  const std::uint64_t messages = read_all_messages(**opened);
  const Offset next = (*opened)->next_offset();
  opened->reset();
  opened = log::SegmentLog::open(options, storage, pool, Timestamp{1});
  require(opened.ok() && (*opened)->next_offset() == next && read_all_messages(**opened) == messages);
  auto batch = test::make_batch({"one more"});
  const auto appended = (*opened)->append(batch, Timestamp{2});
  require(appended.outcome == log::AppendOutcome::appended && appended.base == next);
  require(read_all_messages(**opened) == messages + 1);
  return 0;
}
