/// Fuzz target: a log's directory of up to four files of any bytes is inspected, repaired into a new one,
/// copied, and repaired in place. Whatever was there, only batches that pass their checks come out; what a
/// repair makes is sound, opens, and holds every message that the inspection found, at its offset.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <source_location>
#include <string>

#include "fuzz/mended_segment.hpp"
#include "log/inspect.hpp"
#include "log/repair.hpp"
#include "log/segment_log.hpp"
#include "log/snapshot.hpp"
#include "support/batches.hpp"
#include "support/faulty_storage.hpp"

namespace {

using namespace lightq;
using Messages = std::map<std::uint64_t, std::string>;

void require(bool condition, std::source_location where = std::source_location::current()) {
  if (condition) return;
  std::fprintf(stderr, "line %u does not hold\n", where.line());
  std::abort();
}

/// The messages of a log.
class Reader final : public log::LogVisitor {
 public:
  bool on_batch(const log::ScannedBatch& batch, const BatchView& view) override {
    require(!BatchView::check(view.bytes()).has_value());
    std::uint64_t offset = batch.base.value;
    for (const auto& payload : test::payloads_of(view)) require(messages.emplace(offset++, payload).second);
    return true;
  }
  bool on_finding(const log::Finding& finding) override {
    require(!finding.text().empty());
    return true;
  }
  Messages messages;
};

/// What an inspection finds; `sound`: it must find no damage.
Messages inspect(const std::string& where, log::Storage& storage, bool sound) {
  Reader reader;
  log::InspectOptions options;
  options.with_cursors = true;
  const auto totals = log::inspect_log(where, storage, options, reader);
  require(totals.ok() && totals->messages == reader.messages.size());
  require(!sound || totals->damages == 0);
  return reader.messages;
}

/// Lays out the files that the input describes: for each a byte of how (1 mended, 2 cursors), a byte of
/// which, two of how long.
void lay_out(const std::uint8_t* data, std::size_t size, test::FaultyStorage& storage) {
  for (int files = 0; files < 4 && size >= 4; ++files) {
    const std::uint8_t how = data[0];
    const Offset first{static_cast<std::uint64_t>(data[1] % 16)};
    const std::size_t length = std::min(size - 4, data[2] + std::size_t{256} * data[3]);
    const bool cursors = (how & 2) != 0;
    const std::string path =
        "/log/" + (cursors ? "cursors." + std::to_string(first.value % 2) : log::segment_name(first));
    require(storage.open(path, log::OpenMode::create).ok());
    auto& file = storage.bytes_of(path);
    const bool mended = (how & 1) != 0 && !cursors;
    file.assign(mended ? log::segment_header_bytes : 0, std::byte{0});
    const auto* bytes = reinterpret_cast<const std::byte*>(data + 4);
    file.insert(file.end(), bytes, bytes + length);
    if (mended) test::mend_segment(file, first);
    data += 4 + length;
    size -= 4 + length;
  }
}

void require_repaired(const std::string& where, test::FaultyStorage& storage, const Messages& found,
                      const log::RepairReport& report) {
  const Messages messages = inspect(where, storage, true);
  require(messages.size() == report.messages);
  for (const auto& [offset, payload] : found) {
    const auto kept = messages.find(offset);
    // Where two files have the same offsets, each sound, either may be kept.
    require(kept != messages.end());
  }
  log::SegmentPool pool({"/pool"}, storage);
  log::SegmentLogOptions options;
  options.directory = where;
  const auto opened = log::SegmentLog::open(options, storage, pool, Timestamp{1});
  require(opened.ok() && (*opened)->recovery().damaged.empty() &&
          (*opened)->next_offset() == report.next_offset);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 100'000) return 0;
  test::FaultyStorage storage;
  lay_out(data, size, storage);
  const Messages found = inspect("/log", storage, false);
  if (const auto copied = log::snapshot_log("/log", "/copy", storage)) inspect("/copy", storage, false);
  const auto repaired = log::repair_to("/log", "/new", {}, storage);
  if (!repaired) {
    require(repaired.error().code == ErrorCode::foreign_format);
    return 0;
  }
  require_repaired("/new", storage, found, *repaired);
  const auto in_place = log::repair_in_place("/log", {}, storage);
  require(in_place.ok() && in_place->messages == repaired->messages);
  require_repaired("/log", storage, found, *in_place);
  return 0;
}
