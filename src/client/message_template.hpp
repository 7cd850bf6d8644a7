/// How a message is printed: a word's format, or a pattern with places for its parts. Layer:
/// cli.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <lightq/base/attributes.hpp>
#include <lightq/base/types.hpp>

namespace lightq::cli {

/// A message as it lies in a log, or came from it.
struct LoggedMessage {
  Offset offset;
  Timestamp time;
  std::string_view payload;
  AttributesView attributes = {};
};

/// `2026-01-31T12:00:00.000000Z`
std::string format_time(Timestamp time);

/// One of the words raw, json, hex and text, or a pattern: %o offset, %t time, %T time in µs since 1970, %s
/// size in bytes, %p payload, %e payload with backslashes for what cannot be shown, %x payload in
/// hexadecimal, %k key and %h headers with such backslashes, %% a percent sign; \n, \t, \0 and \\ as in C. A
/// pattern ends no line by itself.
class MessageTemplate {
 public:
  /// Nothing where `text` is no such word, has no %, or has a % or \ before something else.
  static std::optional<MessageTemplate> parse(std::string_view text);
  void append(std::string& to, const LoggedMessage& message) const;

 private:
  struct Part {
    char field = 0;  ///< the letter behind %; 0: text as it is
    std::string text;
  };
  void append_text(char c);
  static void append_field(std::string& to, char field, const LoggedMessage& message);
  std::vector<Part> parts_;
};

}  // namespace lightq::cli
