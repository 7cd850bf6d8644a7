/// Formats a message by a named format, or by a pattern with fields. Layer: cli.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <lightq/base/attributes.hpp>
#include <lightq/base/types.hpp>

namespace lightq::cli {

/// A message from a log or a broker.
struct LoggedMessage {
  Offset offset;
  Timestamp time;
  std::string_view payload;
  AttributesView attributes = {};
};

/// Returns a time in UTC: `2026-01-31T12:00:00.000000Z`.
std::string format_time(Timestamp time);

/// A format: one of the words raw, json, hex and text, or a pattern. Fields of a pattern: %o offset, %t time,
/// %T time in µs since 1970, %s size in bytes, %p payload, %e payload with backslash escapes for unprintable
/// bytes, %x payload in hexadecimal, %k key and %h headers with the same escapes, %% a percent sign. \n, \t,
/// \0 and \\ are as in C. A pattern adds no line end.
class MessageTemplate {
 public:
  /// Parses a format. Returns nothing if `text` is no such word and has no %, or has a % or \ before an
  /// unknown character.
  static std::optional<MessageTemplate> parse(std::string_view text);
  void append(std::string& to, const LoggedMessage& message) const;

 private:
  struct Part {
    char field = 0;  ///< the letter after %; 0: literal text
    std::string text;
  };
  void append_text(char c);
  static void append_field(std::string& to, char field, const LoggedMessage& message);
  std::vector<Part> parts_;
};

}  // namespace lightq::cli
