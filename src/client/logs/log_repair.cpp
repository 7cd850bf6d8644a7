/// `lightq log repair` and `lightq log snapshot`. Layer: cli.
#include "log/tools/repair.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstddef>

#include "client/invocation.hpp"
#include "client/json_text.hpp"
#include "client/logs/log_directory.hpp"
#include "client/terminal.hpp"
#include "client/units.hpp"
#include "log/storage/posix_storage.hpp"
#include "log/tools/snapshot.hpp"

namespace lightq::cli {
namespace {

constexpr std::size_t ranges_shown_max = 20;  // in text output; JSON has all

int fail_with(const Error& error) {
  say_error(to_word(error.code), error.text());
  return error.code == ErrorCode::invalid_argument ? exit_usage : exit_failure;
}

std::string report_json(const std::string& place, const log::RepairReport& report) {
  JsonArray lost;
  for (const log::LostRange& range : report.lost)
    lost.add(JsonObject().add("first_offset", range.first.value).add("next_offset", range.next.value).text());
  JsonArray lost_cursors;
  for (const std::string& cursor : report.lost_cursors)
    lost_cursors.add(JsonObject().add_bytes("text", cursor).text());
  return JsonObject()
             .add("cmd", "log repair")
             .add("status", "ok")
             .add_bytes("directory", place)
             .add("segments_read", report.segments_read)
             .add("segments_written", report.segments_written)
             .add("segments_kept", report.segments_kept)
             .add("messages", report.messages)
             .add("lost_messages", report.lost_messages())
             .add("first_offset", report.first_offset.value)
             .add("next_offset", report.next_offset.value)
             .add("cursors", report.cursors)
             .add("clamped_cursors", report.clamped_cursors.size())
             .add_bytes("cursors_lost", report.cursors_lost)
             .add_raw("lost_cursors", lost_cursors.text())
             .add_bytes("producers_lost", report.producers_lost)
             .add("indexes_dropped", report.indexes_dropped)
             .add_bytes("moved_to", report.moved_to)
             .add_raw("lost", lost.text())
             .text() +
         "\n";
}

std::string words_of(const std::string& place, const log::RepairReport& report) {
  std::string text = place + ": " + format_messages(report.messages) + ", offsets " +
                     std::to_string(report.first_offset.value) + " up to " +
                     std::to_string(report.next_offset.value) + "\n";
  text += "lost for good: " + format_messages(report.lost_messages()) + "\n";
  for (std::size_t i = 0; i < std::min(report.lost.size(), ranges_shown_max); ++i)
    text += "  offsets " + std::to_string(report.lost[i].first.value) + " up to " +
            std::to_string(report.lost[i].next.value) + "\n";
  if (report.lost.size() > ranges_shown_max)
    text += "  … " + format_count(report.lost.size() - ranges_shown_max) + " more\n";
  if (!report.cursors_lost.empty())
    text += "the cursors are lost, so consumers begin anew: " + report.cursors_lost + "\n";
  for (const std::string& cursor : report.lost_cursors)
    text += "dropped from the cursor table: " + cursor + "\n";
  if (!report.producers_lost.empty())
    text += "the state of the producers is lost, so they receive unknown_producer: " + report.producers_lost +
            "\n";
  if (report.indexes_dropped != 0)
    text += format_count(report.indexes_dropped) +
            " index files did not match and were dropped: they are rebuilt when the log is opened\n";
  for (const std::string& name : report.clamped_cursors)
    text += "the cursor " + name + " was past the end, and was moved to the end\n";
  if (!report.moved_to.empty()) text += "the old files are in " + report.moved_to + "\n";
  return text;
}

/// Returns true if the new log lacks something that the old one had.
bool has_losses(const log::RepairReport& report) {
  return !report.lost.empty() || !report.cursors_lost.empty() || !report.lost_cursors.empty() ||
         !report.producers_lost.empty();
}

int print(const Common& common, const std::string& place, const log::RepairReport& report) {
  Output out;
  out.write(common.json ? report_json(place, report) : words_of(place, report));
  if (!out.end()) return exit_failure;
  return has_losses(report) ? exit_lost : exit_ok;
}

int repair_in_place(const Common& common, const LogRepair& repair, const std::string& directory) {
  const auto lock = LogLock::take(directory);
  if (!lock) return fail_with(lock.error());
  log::PosixStorage storage;
  const auto report = log::repair_in_place(directory, {repair.trust_batches}, storage);
  if (!report) return fail_with(report.error());
  const bool nothing = report->moved_to.empty() && report->segments_written == 0;
  if (nothing && !common.quiet) say("nothing to repair");
  return print(common, directory, *report);
}

/// Makes new files accessible to their owner only, because a copy may be in a more public place than the log.
/// Linked files keep their permissions.
void make_private() {
  constexpr mode_t others = 077;
  umask(others);
}

}  // namespace

int run_log_repair(const Common& common, const LogRepair& repair) {
  if (repair.output.empty() != repair.force) {
    say_error("invalid_argument",
              repair.force
                  ? "--output writes a new log and --force changes the old one: give only one of them"
                  : "give the directory of the new log with --output NEWDIR (or --force, to replace "
                    "damaged files)");
    return exit_usage;
  }
  const auto directory = find_log(common, repair.directory);
  if (!directory) return fail_with(directory.error());
  if (repair.force) return repair_in_place(common, repair, *directory);
  const auto output = find_new_place(repair.output);
  if (!output) return fail_with(output.error());
  make_private();
  log::PosixStorage storage;
  const auto report = log::repair_to(*directory, *output, {repair.trust_batches}, storage);
  if (!report) return fail_with(report.error());
  const int code = print(common, *output, *report);
  if (!common.quiet && !common.json)
    say("to use it: stop the process that uses " + *directory + ", move that directory away, and move " +
        *output + " to its place");
  return code;
}

int run_log_snapshot(const Common& common, const std::string& given, const std::string& output) {
  const auto directory = find_log(common, given);
  if (!directory) return fail_with(directory.error());
  const auto place = find_new_place(output);
  if (!place) return fail_with(place.error());
  make_private();
  log::PosixStorage storage;
  const auto report = log::snapshot_topic(*directory, *place, storage);
  if (!report) return fail_with(report.error());
  Output out;
  if (common.json) {
    out.write(JsonObject()
                  .add("cmd", "log snapshot")
                  .add("status", "ok")
                  .add_bytes("directory", *place)
                  .add("segments", report->segments)
                  .add("linked", report->linked)
                  .add("copied_bytes", report->copied_bytes)
                  .add("first_offset", report->first_offset.value)
                  .add("next_offset", report->next_offset.value)
                  .add("damages", report->damages)
                  .text() +
              "\n");
  } else {
    out.write(*place + ": offsets " + std::to_string(report->first_offset.value) + " up to " +
              std::to_string(report->next_offset.value) + " in " + format_count(report->segments) +
              " segments, " + format_count(report->linked) + " linked, " + format_size(report->copied_bytes) +
              " copied\n");
  }
  if (report->damages != 0)
    say("the log is damaged, and so is the snapshot: see  lightq log verify " + *place);
  return out.end() && report->damages == 0 ? exit_ok : exit_failure;
}

}  // namespace lightq::cli
