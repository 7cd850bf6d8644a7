/// Fuzz target: opens carried messages from a segment file of any bytes, reads them all, and adds one. Only
/// sound copies may be returned, under their own offsets, and opening again must find the same ones.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "fuzz/mended_segment.hpp"
#include "log/carried/carried_log.hpp"
#include "support/batches.hpp"
#include "support/faulty_storage.hpp"

namespace {

using namespace lightq;

void require(bool condition) {
  if (!condition) std::abort();
}

constexpr Offset main_first{1'000'000};

/// Reads all copies. Returns their number.
std::uint64_t read_copies(log::CarriedLog& carried) {
  std::vector<Offset> offsets;
  carried.offsets().for_each([&](OffsetRange run) {
    for (Offset at = run.begin; at < run.end; at = at + 1) offsets.push_back(at);
  });
  for (const Offset at : offsets) {
    require(at < main_first);
    const log::ReadResult found = carried.find(at, main_first);
    require(found.outcome == log::ReadOutcome::batch && found.batch.base_offset() == at);
    require(found.batch.record_count() == 1 && !BatchView::check(found.batch.bytes()));
  }
  return offsets.size();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1 || size > 60'000) return 0;
  test::FaultyStorage storage;
  log::SegmentPool pool({"/pool"}, storage);
  log::SegmentLogOptions options;
  options.directory = "/log";
  const std::string path = "/log/carried/" + log::segment_name({0});
  require(storage.open(path, log::OpenMode::create).ok());
  auto& file = storage.bytes_of(path);
  const bool mended = (data[0] & 1) != 0;
  file.assign(mended ? log::segment_header_bytes : 0, std::byte{0});
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  file.insert(file.end(), bytes + 1, bytes + size);
  if (mended) test::mend_segment(file, {0});

  const auto open = [&] {
    return log::CarriedLog::open(options, 0, main_first, storage, pool, Timestamp{1});
  };
  auto carried = open();
  if (!carried) return 0;
  const std::uint64_t copies = read_copies(**carried);
  carried->reset();
  carried = open();
  require(carried.ok() && read_copies(**carried) == copies);
  auto copy = test::make_batch({"one more"});
  stamp_batch(copy, {999'999}, Timestamp{2}, 0);
  if (!(*carried)->add(copy)) return 0;  // the file has used up its offsets
  require(read_copies(**carried) >= copies);
  (*carried)->maintain(Timestamp{3});
  read_copies(**carried);
  return 0;
}
