/// Describes the findings of an inspection in words. Layer: tools.
#include "log/tools/finding.hpp"

#include <array>
#include <cstddef>

namespace lightq::log {

namespace {

std::string offsets_text(const Finding& finding) {
  if (finding.first == finding.next) return "";
  return "offsets " + std::to_string(finding.first.value) + " up to " + std::to_string(finding.next.value);
}

std::string positions_text(const Finding& finding) {
  return "from position " + std::to_string(finding.begin_position) + " to " +
         std::to_string(finding.end_position);
}

}  // namespace

std::string_view to_word(Finding::Kind kind) {
  constexpr std::array<std::string_view, 19> words = {
      "damaged", "unreadable", "header",  "foreign", "stranger",  "misnamed", "overlap",
      "missing", "seal",       "cursors", "cursor",  "producers", "forged",   "mixed",
      "torn",    "ahead",      "gap",     "copy",    "index"};
  return words.at(static_cast<std::size_t>(kind));
}

std::string Finding::text() const {
  const std::string offsets = offsets_text(*this);
  const std::string lost = (offsets.empty() ? "an unknown number of messages" : offsets) + " cannot be read";
  switch (kind) {
    case Kind::damaged: return file + " is damaged " + positions_text(*this) + ": " + lost;
    case Kind::unreadable: return file + " cannot be read by the disk " + positions_text(*this) + ": " + lost;
    case Kind::header:
      return file + ": the first page, positions 0 to 4096, is " +
             (detail.empty() ? "damaged" : "damaged (" + detail + ")") + ": " + lost;
    case Kind::foreign: return detail;
    case Kind::stranger: return file + " belongs to another log: " + lost;
    case Kind::misnamed: return file + " should be called " + detail;
    case Kind::overlap: return file + " begins with " + offsets + ", but " + detail + " contains that too";
    case Kind::missing: return "a file is missing after " + file + ": " + lost;
    case Kind::seal: return file + ": the seal, positions 64 to 128, is damaged; no message is lost";
    case Kind::forged:
      return file + " contains bytes that were not encrypted there with its key " + positions_text(*this) +
             ": " + lost;
    case Kind::mixed:
      return file + " " + detail +
             ": the log mixes encrypted and unencrypted segments, so a broker delivers nothing from it";
    case Kind::cursors: return "the cursors cannot be read: " + detail;
    case Kind::producers:
      return "the state of the producers cannot be read, so returning producers receive unknown_producer: " +
             detail;
    case Kind::torn:
      if (!detail.empty()) return file + ": " + detail + "; the data written before remains valid";
      return file + ": an append was never completed, " + std::to_string(end_position - begin_position) +
             " bytes at position " + std::to_string(begin_position);
    case Kind::ahead:
      return "the cursor " + detail + " stands at " + std::to_string(next.value) +
             ", past the log's end at " + std::to_string(first.value) + ", and continues there";
    case Kind::cursor:
      return file + " " + positions_text(*this) + ": " + detail + ": the position of this cursor is lost";
    case Kind::copy: return file + " " + positions_text(*this) + ": " + detail;
    case Kind::index: return "index: rebuilt when the log is opened, and no message is lost: " + detail;
    case Kind::gap: return offsets + " are missing since a repair, before " + file;
  }
  return file;
}

}  // namespace lightq::log
