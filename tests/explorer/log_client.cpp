/// A user of a log on an explored disk. It checks the log's promises.
#include "explorer/log_client.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace lightq::test {

using log::AppendOutcome;

LogClient::LogClient(ExplorerStorage& storage, Payloads& payloads) : storage_(&storage), payloads_(payloads) {
  options.directory = directory;
  options.segment_bytes = 8192;
}

void LogClient::complain(const std::string& what) {
  if (!violation) violation = what;
}

bool LogClient::open(Ending ending) {
  close();
  pool_ =
      std::make_unique<log::SegmentPool>(log::SegmentPoolOptions{pool_directory, pool_files_max}, *storage_);
  auto opened = log::SegmentLog::open(options, *storage_, *pool_, now);
  if (!opened) {
    if (!calls_fail) complain("the log does not open: " + opened.error().text());
    return false;
  }
  log_ = std::move(*opened);
  cursors_ = std::make_unique<log::CursorFile>(*storage_, directory);
  if (calls_fail) return true;
  compare(ending);
  if (violation) return true;
  // Everything that was read now must be there from now on.
  died_opening = false;
  history.messages.resize(log_->next_offset().value, History::lost);
  for (const Offset offset : damaged_now_) history.messages[offset.value] = History::lost;
  history.certain_end = history.end();
  const Offset first_before = history.first;
  history.first = log_->first_offset();
  const bool was_closed = history.closed;
  // A power cut may destroy seals of full segments and so cause a scan. Dropped segments that are visible
  // again may have no seal.
  const bool same =
      ending == Ending::kill && log_->recovery().clean() && log_->first_offset() == first_before;
  const bool scanned = same && log_->recovery().scanned_bytes != 0;
  if (was_closed && (!log_->recovery().closed || scanned))
    complain("a log that was closed is looked through");
  told_durable_ = log_->durable_offset();
  if (history.end() < told_durable_) complain("durable_offset is past next_offset");
  note_durable();
  const bool all = !options.mapped_writes || was_closed;
  if (all && told_durable_ != history.end()) complain("opening did not make what it found durable");
  compare_cursor();
  return true;
}

void LogClient::close() {
  job_.reset();
  open_ = {};
  log_.reset();
  pool_.reset();
  cursors_.reset();
}

void LogClient::note_first() {
  if (log_ != nullptr && history.first < log_->first_offset()) history.first = log_->first_offset();
}

void LogClient::note() {
  note_first();
  const Offset durable = log_->durable_offset();
  if (durable < told_durable_) complain("durable_offset went back");
  told_durable_ = durable;
  if (history.end() < durable) complain("durable_offset is past next_offset");
  note_durable();
}

// Dropped files may be visible again after a kill, and were never synced. So the promise begins at the
// present first offset.
void LogClient::note_durable() {
  if (told_durable_ < history.durable) return;
  history.durable = told_durable_;
  history.durable_from = log_->first_offset();
}

AppendOutcome LogClient::append(const std::vector<std::size_t>& sizes) {
  finish_batch();
  history.closed = false;
  builder_.clear();
  const std::size_t before = history.messages.size();
  const std::size_t number = payloads_.count();
  for (const std::size_t bytes : sizes) {
    history.messages.push_back(payloads_.make(bytes));
    builder_.add(as_byte_view(payloads_.text(history.messages.back())));
  }
  const log::AppendResult result = log_->append(builder_.finish(), now);
  if (result.outcome == AppendOutcome::appended) {
    if (result.base.value != before)
      complain("an append was given offset " + std::to_string(result.base.value));
    history.certain_end = history.end();
  } else {
    history.messages.resize(before);
    payloads_.forget_from(number);
  }
  if (log_->next_offset() != history.end()) complain("next_offset is not one past the last message appended");
  note();
  return result.outcome;
}

bool LogClient::flush() {
  finish_batch();
  const auto flushed = log_->flush();
  note();
  if (flushed && log_->durable_offset() != log_->next_offset())
    complain("flush returned, and not all is durable");
  return flushed.ok();
}

bool LogClient::close_log() {
  finish_batch();
  const auto closed = log_->close();
  note();
  if (closed && told_durable_ != history.end()) complain("close returned, and not all is durable");
  // A last segment with an unreadable header is scanned again.
  history.closed = closed && !log_->segments().empty() && log_->segments().active().header().epoch != 0;
  return closed.ok();
}

void LogClient::make_room(std::size_t bytes, Offset limit) {
  finish_batch();
  history.closed = false;
  log_->make_room(bytes, limit);
  note();
}

void LogClient::maintain() {
  finish_batch();
  history.closed = false;
  log_->maintain(now);
  note();
}

bool LogClient::take_job() {
  if (job_ != nullptr) return false;
  job_ = log_->take_disk_job(now);
  note();
  return job_ != nullptr;
}

void LogClient::run_job() {
  job_->run();
}

void LogClient::finish_job() {
  job_->finish();
  job_.reset();
  note();
}

std::vector<log::NamedCursor> LogClient::cursors_at(std::uint64_t offset) {
  // Alternates every eight offsets between cursors with and without ranges, so that both file versions are
  // written.
  std::vector<OffsetRange> ranges;
  if (offset / 8 % 2 == 0) ranges = {{{offset + 1}, {offset + 2}}, {{offset + 5}, {offset + 9}}};
  return {{std::string(600, 'n'), {offset}}, {"reader", {offset}, log::unfinished_between({offset}, ranges)}};
}

bool LogClient::commit(std::uint64_t offset) {
  history.maybe_cursor.push_back(offset);
  const auto written = cursors_->write(log::CursorFile::encode(cursors_at(offset)));
  if (!written) return false;
  history.committed = offset;
  history.maybe_cursor.clear();
  return true;
}

void LogClient::donate(std::size_t batches, std::size_t bytes) {
  log::SegmentLogOptions other = options;
  other.directory = "/topics/2";
  if (batches % 2 == 0) other.ciphers = nullptr;
  auto opened = log::SegmentLog::open(other, *storage_, *pool_, now);
  if (!opened) return;
  for (std::size_t i = 0; i < batches; ++i) {
    builder_.clear();
    builder_.add(as_byte_view(payloads_.text(payloads_.make(bytes))));
    static_cast<void>((*opened)->append(builder_.finish(), now));
  }
  static_cast<void>((*opened)->destroy());
}

// --- Comparing ---

void LogClient::compare(Ending ending) {
  finish_batch();
  damaged_now_.clear();
  const Offset floor = ending == Ending::kill ? history.certain_end : history.durable;
  compare_ends(floor);
  if (violation) return;
  compare_reports(floor);
  compare_messages(floor);
}

Offset LogClient::promised_from(Offset floor) const {
  const bool all = history.durable < floor;  // after a kill
  return all ? history.first : std::max(history.first, history.durable_from);
}

void LogClient::compare_ends(Offset floor) {
  const Offset next = log_->next_offset();
  if (history.end() < next) {
    complain("ghost: next_offset is " + std::to_string(next.value) + ", only " +
             std::to_string(history.messages.size()) + " were ever appended");
  }
  if (next < floor) {
    complain("lost: next_offset is " + std::to_string(next.value) + ", promised were " +
             std::to_string(floor.value));
  }
  const Offset from = promised_from(floor);
  if (from < floor && from < log_->first_offset()) {
    complain("lost: first_offset is " + std::to_string(log_->first_offset().value) + ", promised from " +
             std::to_string(from.value));
  }
}

// A power cut damages no promised message. A dropped file may be visible again and be damaged, because it was
// no longer synced.
void LogClient::compare_reports(Offset floor) {
  for (const log::DamagedRange& range : log_->recovery().damaged) {
    Offset offset = std::max(range.first, promised_from(floor));
    for (; offset < range.next && offset < floor; offset = offset + 1) {
      if (history.messages[offset.value] == History::lost) continue;
      complain("lost: recovery calls " + std::to_string(offset.value) + " damaged, promised were " +
               std::to_string(floor.value));
    }
  }
}

void LogClient::compare_messages(Offset floor) {
  const Offset next = log_->next_offset();
  log::ReadPosition place{log_->first_offset()};
  while (place.offset < next && !violation) {
    const log::ReadResult result = log_->read(place);
    if (result.outcome == log::ReadOutcome::batch) {
      if (!compare_batch(result.batch, place.offset)) return;
      place.offset = result.batch.end_offset();
    } else if (result.outcome == log::ReadOutcome::damaged && place.offset < result.next) {
      compare_damage(place.offset, result.next, floor);
      place.offset = result.next;
    } else {
      complain("a read at " + std::to_string(place.offset.value) + " leads nowhere");
    }
  }
}

bool LogClient::compare_batch(const BatchView& batch, Offset from) {
  Offset offset = batch.base_offset();
  if (from < offset || batch.end_offset() <= from || history.end() < batch.end_offset()) {
    complain("ghost: a read at " + std::to_string(from.value) + " gave offsets " +
             std::to_string(offset.value) + " to " + std::to_string(batch.end_offset().value));
    return false;
  }
  for (auto record = batch.records(); !record.done(); record.next(), offset = offset + 1) {
    if (offset < from) continue;
    const std::int32_t number = history.messages[offset.value];
    const bool right = number != History::lost && as_text(record.payload()) == payloads_.text(number);
    if (right) continue;
    complain("ghost or garbage at offset " + std::to_string(offset.value) + ": \"" +
             std::string(as_text(record.payload()).substr(0, 20)) + "\" instead of " +
             (number == History::lost ? "nothing"
                                      : "\"" + payloads_.text(number).substr(0, 20) + "\" of " +
                                            std::to_string(payloads_.text(number).size()) + " bytes") +
             " number " + std::to_string(number) + " of " + std::to_string(payloads_.count()));
    return false;
  }
  return true;
}

void LogClient::compare_damage(Offset from, Offset next, Offset floor) {
  for (Offset offset = from; offset < next; offset = offset + 1) {
    damaged_now_.push_back(offset);
    if (history.messages[offset.value] == History::lost) continue;
    if (offset < promised_from(floor)) continue;
    if (offset < floor) {
      complain("lost: " + std::to_string(offset.value) + " cannot be read: " + log_->last_error().text());
    } else if (!died_opening && !is_reported(offset)) {
      complain("recovery did not notice that " + std::to_string(offset.value) + " cannot be read");
    }
  }
}

bool LogClient::is_reported(Offset offset) const {
  const auto& damaged = log_->recovery().damaged;
  return std::any_of(damaged.begin(), damaged.end(), [&](const log::DamagedRange& range) {
    return range.first <= offset && offset < range.next;
  });
}

void LogClient::compare_cursor() {
  const auto loaded = cursors_->load();
  const bool confirmed = history.committed != History::no_cursor;
  if (!loaded) return complain("the cursor is lost: " + loaded.error().text());
  if (loaded->empty()) {
    if (confirmed) complain("the cursor is lost");
    return;
  }
  const std::uint64_t found = loaded->front().offset.value;
  if (*loaded != cursors_at(found)) complain("the cursors are not those that were written");
  const auto& maybe = history.maybe_cursor;
  const bool known =
      found == history.committed || std::find(maybe.begin(), maybe.end(), found) != maybe.end();
  if (!known) complain("the cursor stands at " + std::to_string(found) + ", where it was never put");
}

}  // namespace lightq::test
