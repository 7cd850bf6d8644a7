/// Formats findings and segments for the commands on logs. Layer: cli.
#include "client/logs/log_report.hpp"

#include "client/json_text.hpp"
#include "client/units.hpp"

namespace lightq::cli {
namespace {

std::string_view word_of(log::PageState state) {
  switch (state) {
    case log::PageState::sound: return "sound";
    case log::PageState::blank: return "blank";
    case log::PageState::damaged: return "damaged";
    case log::PageState::unreadable: return "unreadable";
    case log::PageState::foreign: return "foreign";
    case log::PageState::misnamed: return "misnamed";
    case log::PageState::stranger: return "stranger";
  }
  return "damaged";
}

std::string state_of(const log::SegmentSummary& summary) {
  if (summary.dropped) return "dropped by its log in the meantime";
  if (summary.damages != 0) return "DAMAGED";
  return summary.torn_bytes == 0 ? "ok" : "ok, torn tail";
}

/// Returns the id of the segment's key as text; empty if it is not encrypted.
std::string key_of(const log::SurveyedSegment& segment) {
  const std::uint64_t key_id = segment.header ? segment.header->key_id : 0;
  return key_id == 0 ? "" : log::key_id_text(key_id);
}

}  // namespace

std::string json_of(const log::Finding& finding) {
  return JsonObject()
      .add("kind", log::to_word(finding.kind))
      .add("damage", finding.is_damage())
      .add_bytes("file", finding.file)
      .add("begin_position", finding.begin_position)
      .add("end_position", finding.end_position)
      .add("first_offset", finding.first.value)
      .add("next_offset", finding.next.value)
      .add_bytes("text", finding.text())
      .text();
}

std::string json_of(const log::SegmentSummary& summary) {
  const log::SurveyedSegment& segment = summary.segment;
  return JsonObject()
      .add_bytes("file", segment.path)
      .add("header", word_of(segment.state))
      .add("first_offset", segment.first_offset().value)
      .add("next_offset", summary.end_offset.value)
      .add("batches", summary.batches)
      .add("messages", summary.messages)
      .add("bytes", segment.size_bytes)
      .add("end_position", summary.end_position)
      .add("sealed", segment.seal.has_value())
      .add("epoch", segment.epoch)
      // a string, because it may be larger than JSON's numbers
      .add("incarnation", std::to_string(segment.incarnation))
      .add("key_id", key_of(segment))
      .add("gap_begin", segment.header ? segment.header->gap_begin.value : 0)
      .add("torn_bytes", summary.torn_bytes)
      .add("damages", summary.damages)
      .add("dropped", summary.dropped)
      .text();
}

std::string line_of(const log::SegmentSummary& summary) {
  const log::SurveyedSegment& segment = summary.segment;
  return segment.name() + "  offsets " + std::to_string(segment.first_offset().value) + " up to " +
         std::to_string(summary.end_offset.value) + ", " + format_count(summary.batches) + " batches, " +
         format_size(summary.end_position == 0 ? segment.size_bytes : summary.end_position) + " of " +
         format_size(segment.size_bytes) + ", epoch " + std::to_string(segment.epoch) +
         (key_of(segment).empty() ? "" : ", key " + key_of(segment)) +
         (segment.seal ? ", sealed: " : ", not sealed: ") + state_of(summary);
}

}  // namespace lightq::cli
