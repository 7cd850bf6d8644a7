/// `lightq log dump`: prints the content of a log's directory. Layer: cli.
#include <algorithm>

#include <lightq/base/batch_unpack.hpp>

#include "client/invocation.hpp"
#include "client/json_text.hpp"
#include "client/logs/log_directory.hpp"
#include "client/logs/log_keys.hpp"
#include "client/logs/log_report.hpp"
#include "client/message_template.hpp"
#include "client/terminal.hpp"
#include "client/units.hpp"
#include "log/storage/posix_storage.hpp"
#include "log/tools/cursor_survey.hpp"
#include "log/tools/inspect.hpp"

namespace lightq::cli {
namespace {

/// One run of the command.
class Dump final : public log::LogVisitor {
 public:
  Dump(const Common& common, const LogDump& dump, MessageTemplate format)
      : common_(common), dump_(dump), format_(std::move(format)) {
    if (dump.force) out_.keep_controls();
  }

  bool on_segment(const log::SurveyedSegment& segment) override {
    path_ = segment.path;
    key_id_ = segment.header ? segment.header->key_id : 0;
    return goes_on();
  }

  bool on_batch(const log::ScannedBatch& batch, const BatchView& view) override {
    if (dump_.what == LogDump::What::batches) return print_line(describe(batch));
    if (dump_.what == LogDump::What::messages)
      view.is_encrypted() ? pass_encrypted(batch) : print_messages(batch, view);
    return goes_on();
  }

  bool on_finding(const log::Finding& finding) override {
    damaged_ = damaged_ || finding.is_damage();
    open_ = out_.flush() && open_;  // messages before the finding are printed before it
    if (finding.is_damage() || !common_.quiet) say(finding.text());
    return goes_on();
  }

  bool on_summary(const log::SegmentSummary& summary) override {
    if (dump_.what != LogDump::What::segments) return goes_on();
    return print_line(common_.json ? json_of(summary) : line_of(summary));
  }

  int end() {
    const bool written = out_.end();
    if (encrypted_ != 0)
      say(format_messages(encrypted_) + " are encrypted: give --key-file FILE to print them");
    return written && !damaged_ && (encrypted_ == 0 || shows_headers()) ? exit_ok : exit_failure;
  }

 private:
  [[nodiscard]] bool goes_on() const {
    return open_ && !interrupted() && (dump_.count == 0 || printed_ < dump_.count);
  }

  bool print_line(const std::string& line) {
    ++printed_;
    open_ = out_.write(line + "\n") && open_;
    return goes_on();
  }

  /// Returns true if lines about batches fit between those about messages.
  [[nodiscard]] bool shows_headers() const { return common_.json || dump_.format == "text"; }

  void pass_encrypted(const log::ScannedBatch& batch) {
    encrypted_ += distance(batch.base, batch.end);
    if (shows_headers()) print_line(describe(batch));
  }

  void print_messages(const log::ScannedBatch& batch, const BatchView& view) {
    const auto plain = unpacker_.unpack(view);
    unpacker_.forget();
    if (!plain) return cannot_unpack(batch);
    Offset offset = batch.base;
    for (auto record = plain->records(); !record.done() && goes_on(); record.next(), offset = offset + 1) {
      if (offset.value < dump_.from || dump_.to <= offset.value) continue;
      line_.clear();
      format_.append(line_, {offset, batch.time, as_text(record.payload()), record.attributes()});
      ++printed_;
      open_ = out_.write(line_) && open_;
    }
  }

  /// Reports a batch with the right checksum that cannot be unpacked: it was written like this.
  void cannot_unpack(const log::ScannedBatch& batch) {
    damaged_ = true;
    open_ = out_.flush() && open_;
    say(path_ + ": the batch at position " + std::to_string(batch.position) + " cannot be unpacked");
  }

  [[nodiscard]] std::string describe(const log::ScannedBatch& batch) const {
    if (!common_.json) {
      return path_.substr(path_.find_last_of('/') + 1) + "  position " + std::to_string(batch.position) +
             ", offsets " + std::to_string(batch.base.value) + " up to " + std::to_string(batch.end.value) +
             ", " + std::to_string(batch.total_bytes) + " bytes, " + format_time(batch.time) + ", epoch " +
             std::to_string(batch.epoch) + (key_id_ == 0 ? ": ok" : ": ok, encrypted");
    }
    return JsonObject()
        .add_bytes("file", path_)
        .add("position", batch.position)
        .add("first_offset", batch.base.value)
        .add("next_offset", batch.end.value)
        .add("bytes", batch.total_bytes)
        .add("time", format_time(batch.time))
        .add("time_us", batch.time.us)
        .add("epoch", batch.epoch)
        .add("encrypted", key_id_ != 0)
        .text();
  }

  const Common& common_;
  const LogDump& dump_;
  const MessageTemplate format_;
  Output out_;
  BatchUnpacker unpacker_;
  std::string path_;
  std::uint64_t key_id_ = 0;  // of the current segment
  std::string line_;
  std::uint64_t printed_ = 0;
  std::uint64_t encrypted_ = 0;  // messages that could not be decrypted
  bool open_ = true;
  bool damaged_ = false;
};

// The number of processed ranges that are printed of one cursor.
constexpr std::size_t printed_ranges_max = 4096;

std::uint64_t delayed_of(const log::SurveyedCursor& cursor) {
  std::uint64_t delayed = 0;
  for (const auto& [due, part] : cursor.unfinished.delayed) delayed += part.size();
  return delayed;
}

std::vector<OffsetRange> processed_of(const log::SurveyedCursor& cursor) {
  return cursor.unfinished.processed(cursor.committed, printed_ranges_max);
}

std::string cursor_line(const log::SurveyedCursor& cursor) {
  std::string line = cursor.name + "\t" + std::to_string(cursor.committed.value);
  char before = '\t';
  const auto processed = processed_of(cursor);
  for (const OffsetRange& range : processed) {
    line += before;
    line += "[" + std::to_string(range.begin.value) + "," + std::to_string(range.end.value) + ")";
    before = ' ';
  }
  if (processed.size() == printed_ranges_max) line += " ...";
  return line + "\n";
}

std::string ranges_text(const std::vector<OffsetRange>& ranges) {
  JsonArray array;
  for (const OffsetRange& range : ranges) {
    array.add("[" + std::to_string(range.begin.value) + "," + std::to_string(range.end.value) + "]");
  }
  return array.text();
}

std::string describe(const Common& common, const log::SurveyedCursor& cursor) {
  if (!common.json) return cursor_line(cursor);
  JsonObject object;
  object.add_bytes("file", cursor.file)
      .add_bytes("name", cursor.name)
      .add("committed", cursor.committed.value);
  const log::Unfinished& unfinished = cursor.unfinished;
  const auto processed = processed_of(cursor);
  if (!processed.empty()) object.add_raw("acknowledged", ranges_text(processed));
  if (!unfinished.is_plain(cursor.committed)) {
    object.add("next", unfinished.next.value).add("unfinished", unfinished.messages.size());
  }
  if (!unfinished.delayed.empty()) object.add("delayed", delayed_of(cursor));
  if (cursor.delivered) object.add("delivered", cursor.delivered->value);
  return object.text() + "\n";
}

/// Prints a line for each cursor of a topic or queue, ordered by name.
int dump_cursors(const Common& common, const std::string& directory) {
  log::PosixStorage storage;
  const auto survey = log::survey_log(directory, storage);
  if (!survey) {
    say_error(to_word(survey.error().code), survey.error().text());
    return exit_usage;
  }
  Output out;
  bool damaged = false;
  for (log::CursorSurvey found : {log::survey_cursor_files(directory, storage),
                                  log::survey_cursor_table(directory, storage, survey->incarnation)}) {
    std::sort(found.cursors.begin(), found.cursors.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    for (const log::SurveyedCursor& cursor : found.cursors) out.write(describe(common, cursor));
    for (const log::Finding& finding : found.findings) {
      damaged = damaged || finding.is_damage();
      if (finding.is_damage() || !common.quiet) say(finding.text());
    }
  }
  return out.end() && !damaged ? exit_ok : exit_failure;
}

}  // namespace

int run_log_dump(const Common& common, const LogDump& dump) {
  const auto directory = find_log(common, dump.directory);
  const auto format = MessageTemplate::parse(common.json ? "json" : dump.format);
  if (!directory || !format) {
    say_error("invalid_argument",
              directory ? "'" + dump.format + "' is not a format" : directory.error().text());
    return exit_usage;
  }
  const auto keys = read_key_file(dump.key_file);
  if (!keys) {
    say_error(to_word(keys.error().code), keys.error().text());
    return exit_usage;
  }
  if (dump.what == LogDump::What::cursors) return dump_cursors(common, *directory);
  log::PosixStorage storage;
  Dump run(common, dump, *format);
  log::InspectOptions options;
  options.from = {dump.from};
  options.to = {dump.to};
  options.ciphers = keys->get();
  const auto totals = log::inspect_log(*directory, storage, options, run);
  if (totals) return run.end();
  say_error(to_word(totals.error().code), totals.error().text());
  return exit_usage;
}

}  // namespace lightq::cli
