/// Layer: cli.
#include "client/shown_text.hpp"

#include <cstddef>
#include <cstdint>

namespace lightq::cli {

namespace {

bool is_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80;
}

/// The character that begins there; one byte where it is no UTF-8.
struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 1;
};

Character character_at(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t bytes = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (bytes == 1 || text.size() < bytes) return {first, 1};
  std::uint32_t code = first & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if (!is_continuation(text[i])) return {first, 1};
    code = code << 6U | (static_cast<unsigned char>(text[i]) & 0x3FU);
  }
  return {code, bytes};
}

bool acts(std::uint32_t code) {
  const bool control = code < 0x20 || (0x7F <= code && code < 0xA0);
  const bool turns = code == 0x061C || code == 0x200E || code == 0x200F ||
                     (0x2028 <= code && code <= 0x202E) || (0x2066 <= code && code <= 0x2069);
  return control || turns;
}

}  // namespace

std::string without_controls(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string shown;
  while (!text.empty()) {
    const Character character = character_at(text);
    if (acts(character.code)) {
      shown += "\\u";
      for (int shift = 12; shift >= 0; shift -= 4) shown += digits[character.code >> shift & 0xF];
    } else {
      if (character.code == '\\') shown += '\\';
      shown += text.substr(0, character.bytes);
    }
    text.remove_prefix(character.bytes);
  }
  return shown;
}

}  // namespace lightq::cli
