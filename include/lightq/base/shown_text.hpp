/// Makes foreign text safe for a terminal or a log. Layer: base.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lightq::inline v1 {

namespace detail {

/// Returns the length of the well-formed UTF-8 sequence that begins `text`; 0 if there is none.
inline std::size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (std::size_t at = 1; at < length; ++at) {
    if ((static_cast<unsigned char>(text[at]) & 0xC0U) != 0x80) return 0;
  }
  const auto second = static_cast<unsigned char>(text[1]);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool surrogate = lead == 0xED && second >= 0xA0;
  const bool beyond = lead == 0xF4 && second >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

/// Returns the code point of a well-formed sequence.
inline std::uint32_t code_point(std::string_view sequence) {
  const auto lead = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1) return lead;
  std::uint32_t code = lead & (0x7FU >> sequence.size());
  for (const char c : sequence.substr(1)) code = code << 6U | (static_cast<unsigned char>(c) & 0x3FU);
  return code;
}

/// Returns true if a terminal acts on the character: C0, DEL, C1, line separators, and characters that change
/// the direction of writing.
inline bool is_control(std::uint32_t code) {
  const bool control = code < 0x20 || (0x7F <= code && code < 0xA0);
  const bool turns = code == 0x061C || code == 0x200E || code == 0x200F ||
                     (0x2028 <= code && code <= 0x202E) || (0x2066 <= code && code <= 0x2069);
  return control || turns;
}

inline void append_code(std::string& to, std::uint32_t code) {
  constexpr std::string_view digits = "0123456789abcdef";
  to += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) to += digits[code >> static_cast<unsigned>(shift) & 0xFU];
}

}  // namespace detail

/// Appends `text` so that it cannot act on a terminal. Control characters, characters that change the
/// direction of writing, and bytes that are not UTF-8 become escapes such as `\u001b`, as in JSON. Does not
/// escape characters in `kept`, nor backslashes: text that was escaped before is not escaped again. Thread:
/// any.
inline void append_escaping_controls(std::string& to, std::string_view text, std::string_view kept = {}) {
  while (!text.empty()) {
    const std::size_t length = detail::utf8_length(text);
    const std::string_view sequence = text.substr(0, length == 0 ? 1 : length);
    const std::uint32_t code =
        length == 0 ? static_cast<unsigned char>(text[0]) : detail::code_point(sequence);
    const bool stays = length == 1 && kept.find(text[0]) != std::string_view::npos;
    if (length == 0 || (detail::is_control(code) && !stays)) {
      detail::append_code(to, code);
    } else {
      to += sequence;
    }
    text.remove_prefix(sequence.size());
  }
}

/// Returns `text` escaped as append_escaping_controls does, with backslashes doubled. So nothing else looks
/// like an escape. Thread: any.
inline std::string without_controls(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t backslash = text.find('\\');
    append_escaping_controls(shown, text.substr(0, backslash));
    if (backslash == std::string_view::npos) break;
    shown += "\\\\";
    text.remove_prefix(backslash + 1);
  }
  return shown;
}

}  // namespace lightq::inline v1
