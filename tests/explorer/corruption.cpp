/// Damages the files of a small log and checks that the log notices. This file checks; corruption_cases.cpp
/// makes the damage.
#include "explorer/corruption.hpp"

#include <algorithm>

namespace lightq::test {

namespace {

void complain(CorruptionResult& result, const std::string& what) {
  if (!result.violation) result.violation = what;
}

}  // namespace

Corruption::Corruption(const CorruptionOptions& options) : options_(options) {
  make(base_, 3);
  make(other_, 11);
}

// Appends batches of four sizes, so that batches of equal size exist and can be swapped. Segment epochs
// follow from the disk's random numbers; `lead` draws some first, so that two logs differ.
void Corruption::make(Base& base, std::uint64_t lead) {
  for (; lead != 0; --lead) static_cast<void>(base.disk.random());
  static_cast<void>(base.disk.make_directory("/topics"));
  base.client.open(Ending::kill);
  const std::size_t sizes[] = {40, 700, 300, 40};
  for (std::size_t i = 0; i < options_.messages; ++i) {
    const std::size_t bytes = sizes[i % 4];
    static_cast<void>(base.client.append(i % 5 == 0 ? std::vector{bytes, bytes} : std::vector{bytes}));
    if (i % 8 == 7) static_cast<void>(base.client.flush());
    if (i % 8 == 3) static_cast<void>(base.client.commit(i));
  }
  static_cast<void>(base.client.flush());
  base.client.close();
  base.disk.settle();
  for (const std::string& path : base.disk.paths()) {
    if (path.ends_with(".seg")) base.files.push_back(path);
  }
  list_batches(base);
}

void Corruption::list_batches(Base& base) {
  for (const std::string& file : base.files) {
    const ByteView bytes = base.disk.bytes_of(file);
    log::SegmentPage page{};
    std::copy_n(bytes.begin(), page.size(), page.begin());
    const std::uint32_t mask = log::decode_segment_header(page).header.value().batch_mask;
    for (std::size_t at = log::segment_header_bytes; at < bytes.size();) {
      const bool found = !BatchView::check_header(bytes.subspan(at), mask) &&
                         !BatchView::trusted(bytes.data() + at).check_body();
      if (!found) break;
      const BatchView batch = BatchView::trusted(bytes.data() + at);
      base.batches.push_back({file, at, batch.total_bytes(), batch.base_offset(), batch.end_offset(),
                              batch.append_time(), mask});
      at += batch.total_bytes();
    }
  }
}

ExplorerStorage& Corruption::fresh() {
  reader_.close();
  touched_.clear();
  scratch_.become(base_.disk, {}, {});
  return scratch_;
}

std::vector<std::byte> Corruption::bytes_of(Base& base, const std::string& file, std::size_t at,
                                            std::size_t bytes) {
  const auto from = base.disk.bytes_of(file).subspan(at, bytes);
  return {from.begin(), from.end()};
}

// Writes the bytes. Only bytes that change count as touched.
void Corruption::write(const std::string& file, std::size_t at, const std::vector<std::byte>& bytes) {
  const auto to = scratch_.bytes_of(file);
  for (std::size_t i = 0; i < bytes.size() && at + i < to.size(); ++i) {
    if (to[at + i] != bytes[i]) touch(file, at + i, at + i + 1);
    to[at + i] = bytes[i];
  }
}

bool Corruption::is_touched(const std::string& file, std::size_t begin, std::size_t end) const {
  return std::any_of(touched_.begin(), touched_.end(), [&](const Touched& touched) {
    return touched.file == file && touched.begin < end && begin < touched.end;
  });
}

// --- Judging ---

void Corruption::look_at_damage() {
  first_header_is_anothers_ = false;
  const auto header_of = [](ExplorerStorage& disk, const std::string& file) {
    log::SegmentPage page{};
    const auto bytes = disk.bytes_of(file);
    std::copy_n(bytes.begin(), std::min(bytes.size(), page.size()), page.begin());
    return log::decode_segment_header(page).header;
  };
  const std::string& first = base_.files.front();
  if (is_touched(first, 0, log::segment_seal_position)) {
    const auto header = header_of(scratch_, first);
    first_header_is_anothers_ = header && header->incarnation != header_of(base_.disk, first)->incarnation;
  }
  const auto last = scratch_.bytes_of(base_.files.back());
  last_file_.assign(last.begin(), last.end());
}

void Corruption::judge(const std::string& what, CorruptionResult& result) {
  if (result.violation) return;
  ++result.cases;
  look_at_damage();
  reader_.calls_fail = true;  // judge_batches checks for losses instead
  reader_.violation.reset();
  reader_.history = base_.client.history;
  reader_.open(Ending::power_cut);
  if (reader_.log() == nullptr) {
    ++result.detected;  // the log refused to open and named the file: foreign_format or corrupt
    return;
  }
  const auto found = read_all(what, result);
  judge_batches(found, what, result);
  if (reader_.log()->next_offset() > base_.client.history.end() && reader_.log()->recovery().clean()) {
    complain(result, what + ": offsets that were never given, and nothing is reported");
  }
  const bool all = found.size() == base_.client.history.messages.size();
  ++(all ? result.harmless : result.detected);
  if (result.cases % 16 == 0) append_and_reopen(what, result);
}

std::set<std::uint64_t> Corruption::read_all(const std::string& what, CorruptionResult& result) {
  log::SegmentLog& log = *reader_.log();
  std::set<std::uint64_t> found;
  const auto& messages = base_.client.history.messages;
  for (log::ReadPosition place{log.first_offset()}; place.offset < log.next_offset();) {
    const log::ReadResult read = log.read(place);
    if (read.outcome != log::ReadOutcome::batch) {
      if (read.next <= place.offset) complain(result, what + ": a read leads nowhere");
      if (result.violation) return found;
      place.offset = read.next;
      continue;
    }
    Offset offset = read.batch.base_offset();
    if (place.offset < offset || read.batch.end_offset() <= place.offset) {
      complain(result, what + ": a read at " + std::to_string(place.offset.value) + " gave other offsets");
      return found;
    }
    for (auto record = read.batch.records(); !record.done(); record.next(), offset = offset + 1) {
      const bool right = offset.value < messages.size() &&
                         as_text(record.payload()) == payloads_.text(messages[offset.value]);
      if (!right) complain(result, what + ": a wrong message at " + std::to_string(offset.value));
      found.insert(offset.value);
    }
    const auto known = std::find_if(base_.batches.begin(), base_.batches.end(), [&](const Batch& batch) {
      return batch.base == read.batch.base_offset() && batch.time == read.batch.append_time();
    });
    if (known == base_.batches.end()) complain(result, what + ": a wrong time of appending");
    place.offset = read.batch.end_offset();
  }
  return found;
}

// Returns true if the bytes at the batch's position do not show that a batch was there. They may be zeros,
// lie past the end of the file, or be a sound batch of another epoch, as in a recycled file.
bool Corruption::ends_quietly(const Batch& batch) const {
  if (batch.file != base_.files.back()) return false;
  if (last_file_.size() < batch.position + batch_layout::header_bytes) return true;
  const ByteView there = ByteView(last_file_).subspan(batch.position);
  const bool magic = load_little_endian<std::uint32_t>(there.data()) == batch_layout::magic_value;
  return !magic || !BatchView::check_header(there, batch.mask).has_value();
}

// Checks that each unreadable batch was touched, or that its file's header was, and that the loss was
// reported. A failing read between first_offset and next_offset is a report. The end of the log is cut, and
// recovery counts the bytes, unless the bytes look like a file's earlier use.
void Corruption::judge_batches(const std::set<std::uint64_t>& found, const std::string& what,
                               CorruptionResult& result) {
  const log::SegmentLog& log = *reader_.log();
  bool quiet_end = first_header_is_anothers_;
  for (const Batch& batch : base_.batches) {
    if (found.contains(batch.base.value)) continue;
    const bool header_touched = is_touched(batch.file, 0, log::segment_seal_position) ||
                                is_touched(batch.file, 128, 136);  // the batch mask
    const bool touched = is_touched(batch.file, batch.position, batch.position + batch.bytes) ||
                         header_touched || first_header_is_anothers_;
    const std::string which = what + ": " + std::to_string(batch.base.value);
    const bool at_end = log.next_offset() <= batch.base;
    if (!touched && (strict_ || at_end)) complain(result, which + " was not touched, and is lost");
    if (!touched) ++result.passed_over;
    if (batch.base < log.first_offset() && !first_header_is_anothers_)
      complain(result, which + " is dropped");
    if (!at_end) {
      const bool sealed = batch.file != base_.files.back();
      if (!sealed && log.recovery().clean())
        complain(result, which + " is lost, and recovery does not say so");
      continue;
    }
    quiet_end = quiet_end || ends_quietly(batch);
    if (log.recovery().clean() && !quiet_end) complain(result, which + " is cut, and nobody says so");
  }
}

void Corruption::append_and_reopen(const std::string& what, CorruptionResult& result) {
  log::SegmentLog& log = *reader_.log();
  reader_.history.messages.resize(log.next_offset().value, History::lost);
  reader_.history.first = log.first_offset();
  reader_.history.durable = log.durable_offset();
  const Offset next = log.next_offset();
  if (reader_.append({50}) != log::AppendOutcome::appended)
    complain(result, what + ": takes no more messages");
  const std::int32_t number = reader_.history.messages.back();
  reader_.open(Ending::kill);
  log::ReadPosition place{next};
  const bool there =
      reader_.log() != nullptr && reader_.log()->read(place).outcome == log::ReadOutcome::batch;
  if (!there || number == History::lost) complain(result, what + ": a message appended afterwards is gone");
  payloads_.forget_from(static_cast<std::size_t>(number));
}

void Corruption::judge_cursor(const std::string& what, CorruptionResult& result) {
  if (result.violation) return;
  ++result.cases;
  log::CursorFile cursors(scratch_, LogClient::directory);
  const auto loaded = cursors.load();
  if (!loaded) {
    ++result.detected;
    if (touched_.size() == 1) complain(result, what + ": one damaged file spoils both");
    return;
  }
  const std::uint64_t newest = base_.client.history.committed;
  const std::uint64_t found = loaded->empty() ? History::no_cursor : loaded->front().offset.value;
  const bool right = (found == newest || found + 8 == newest) && *loaded == LogClient::cursors_at(found);
  if (!right) complain(result, what + ": a wrong cursor, " + std::to_string(found));
  ++(found == newest ? result.harmless : result.detected);
}

}  // namespace lightq::test
