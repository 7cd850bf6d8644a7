/// Fuzz target: a log directory with up to four files of any bytes. The log is inspected, repaired into a new
/// directory, copied, and repaired in place. Only batches that pass their checks may be returned. A repaired
/// log must be sound, must open, and must have every message that the inspection found, at the same offset.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <source_location>
#include <string>

#include "fuzz/mended_segment.hpp"
#include "log/format/segment_index_file.hpp"
#include "log/saved_state/cursor_table.hpp"
#include "log/segment_log/segment_log.hpp"
#include "log/tools/inspect.hpp"
#include "log/tools/repair.hpp"
#include "log/tools/snapshot.hpp"
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

/// Collects the messages of a log.
class Reader final : public log::LogVisitor {
 public:
  bool on_batch(const log::ScannedBatch& batch, const BatchView& view) override {
    require(!BatchView::check_header(view.bytes(), BatchView::mask_of(view.bytes())));
    require(!view.check_body());
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

/// Inspects the log and returns its messages. If `sound`, the inspection must find no damage.
Messages inspect(const std::string& where, log::Storage& storage, bool sound) {
  Reader reader;
  log::InspectOptions options;
  options.with_cursors = true;
  options.with_producers = true;
  options.with_indexes = true;
  const auto totals = log::inspect_log(where, storage, options, reader);
  require(totals.ok() && totals->messages == reader.messages.size());
  require(!sound || totals->damages == 0);
  return reader.messages;
}

std::string path_of(std::uint8_t how, Offset first) {
  if ((how & 2) != 0) return "/log/cursors." + std::to_string(first.value % 2);
  if ((how & 4) != 0) return "/log/" + std::string(log::CursorTable::file_name);
  return "/log/" + ((how & 8) != 0 ? log::segment_index_name(first) : log::segment_name(first));
}

/// Replaces the first page of a cursor table by a sound one. It belongs to the log of the mended segments.
void mend_table(std::vector<std::byte>& file) {
  const auto header = log::encode_cursor_table_header(1);
  const auto used = log::encode_cursor_table_used(0, 1);
  std::copy_n(header.begin(), std::min(header.size(), file.size()), file.begin());
  if (file.size() < header.size()) return;
  std::copy(used.begin(), used.end(), file.begin() + log::cursor_table_used_position);
}

/// Creates the files that the input describes. Each has one byte of flags (1 mended, 2 cursors, 4 a cursor
/// table, 8 an index), one byte that chooses its name, and two bytes of length.
void lay_out(const std::uint8_t* data, std::size_t size, test::FaultyStorage& storage) {
  for (int files = 0; files < 4 && size >= 4; ++files) {
    const std::uint8_t how = data[0];
    const Offset first{static_cast<std::uint64_t>(data[1] % 16)};
    const std::size_t length = std::min(size - 4, data[2] + std::size_t{256} * data[3]);
    const bool table = (how & 6) == 4;
    const bool segment = (how & 14) == 0;
    const std::string path = path_of(how, first);
    require(storage.open(path, log::OpenMode::create).ok());
    auto& file = storage.bytes_of(path);
    const bool mended = (how & 1) != 0 && (segment || table);
    file.assign(mended ? log::segment_header_bytes : 0, std::byte{0});
    const auto* bytes = reinterpret_cast<const std::byte*>(data + 4);
    file.insert(file.end(), bytes, bytes + length);
    if (mended && segment) test::mend_segment(file, first);
    if (mended && table) mend_table(file);
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
    // If two files have sound messages at the same offset, a repair may keep either. So only the offset is
    // compared.
    require(kept != messages.end());
  }
  log::SegmentPool pool({"/pool"}, storage);
  log::SegmentLogOptions options;
  options.directory = where;
  const auto opened = log::SegmentLog::open(options, storage, pool, Timestamp{1});
  if (!opened && opened.error().code == ErrorCode::not_supported) return;  // encrypted, and there is no key
  require(opened.ok() && (*opened)->recovery().damaged.empty() &&
          (*opened)->next_offset() == report.next_offset);
  const auto table = log::CursorTable::open(storage, where, (*opened)->incarnation());
  const bool none = !table.ok() && (log::is_missing(table.error()) || (*opened)->incarnation() == 0);
  require(none || (table.ok() && (*table)->damaged().empty() && (*table)->passed_over().empty()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 100'000) return 0;
  test::FaultyStorage storage;
  require(storage.make_directory("/log").ok());
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
