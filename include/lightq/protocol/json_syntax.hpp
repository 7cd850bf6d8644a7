/// Checks whether a text is JSON without keeping any part of it. Layer: protocol.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <lightq/base/limits.hpp>

namespace lightq::inline v1::protocol::detail {

/// Checks one text against RFC 8259, with strict UTF-8 (Unicode) and numbers that a double can hold. For one
/// thread. Lifetime: the text must outlive the object.
class JsonSyntax {
 public:
  explicit JsonSyntax(std::string_view text) : text_(text) {}

  /// Returns true if the text is one value with nothing but white space around it, nested at most
  /// limits::json_depth_max deep. A NUL after it ends the text, as in C.
  [[nodiscard]] bool is_json() {
    skip_space();
    return value(0) && (ends() || text_[at_] == '\0');
  }
  /// Returns the part of the text that is_json has accepted.
  [[nodiscard]] std::string_view document() const { return text_.substr(0, at_); }
  /// Returns the length of the longest string so far, from its opening quote to the next token. White space
  /// after the string counts.
  [[nodiscard]] std::size_t longest_text() const { return longest_; }

 private:
  [[nodiscard]] bool ends() const { return at_ == text_.size(); }
  [[nodiscard]] unsigned char here() const {
    return ends() ? '\0' : static_cast<unsigned char>(text_[at_]);  // NUL is part of no value
  }
  bool take(char wanted) {
    if (ends() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  void skip_space() {
    while (here() == ' ' || here() == '\t' || here() == '\n' || here() == '\r') ++at_;
  }
  bool word(std::string_view wanted) {
    if (!text_.substr(at_).starts_with(wanted)) return false;
    at_ += wanted.size();
    return true;
  }
  static bool is_digit(unsigned char c) { return c >= '0' && c <= '9'; }

  /// Reads a value and the white space after it.
  bool value(std::size_t depth) {
    const bool good = one_value(depth);
    skip_space();
    return good;
  }
  bool one_value(std::size_t depth) {
    switch (here()) {
      case '{': return depth < limits::json_depth_max && object(depth + 1);
      case '[': return depth < limits::json_depth_max && array(depth + 1);
      case '"': return text();
      case 't': return word("true");
      case 'f': return word("false");
      case 'n': return word("null");
      default: return number();
    }
  }
  bool object(std::size_t depth) {
    ++at_;
    skip_space();
    if (take('}')) return true;
    do {
      skip_space();
      if (!text() || !take(':')) return false;
      skip_space();
      if (!value(depth)) return false;
    } while (take(','));
    return take('}');
  }
  bool array(std::size_t depth) {
    ++at_;
    skip_space();
    if (take(']')) return true;
    do {
      skip_space();
      if (!value(depth)) return false;
    } while (take(','));
    return take(']');
  }

  bool number() {
    const std::size_t begin = at_;
    take('-');
    if (!take('0') && !digits()) return false;
    bool large = false;
    if (take('.') && !digits()) return false;
    if (take('e') || take('E')) {
      large = true;
      if (!take('+')) take('-');
      if (!digits()) return false;
    }
    constexpr std::size_t digits_that_fit = 300;
    const std::string_view whole = text_.substr(begin, at_ - begin);
    if (!large && whole.size() < digits_that_fit) return true;
    return std::isfinite(std::strtod(std::string(whole).c_str(), nullptr));
  }
  bool digits() {
    if (!is_digit(here())) return false;
    while (is_digit(here())) ++at_;
    return true;
  }

  /// Reads a string and the white space after it.
  bool text() {
    const std::size_t begin = at_;
    if (!take('"')) return false;
    while (!take('"')) {
      if (!character()) return false;
    }
    skip_space();
    longest_ = std::max(longest_, at_ - begin);
    return true;
  }
  bool character() {
    constexpr unsigned char first_printable = 0x20;
    constexpr unsigned char first_of_several = 0x80;
    if (here() < first_printable) return false;  // includes the end of the text
    if (here() >= first_of_several) return several_bytes();
    if (!take('\\')) {
      ++at_;
      return true;
    }
    if (take('u')) return escaped_unit();
    return !ends() && std::string_view("\"\\/bfnrt").find(text_[at_++]) != std::string_view::npos;
  }
  /// Reads the digits of a `\u` escape. A leading surrogate needs a second escape, which is read too.
  bool escaped_unit() {
    const int unit = hexadecimal();
    const bool leads = unit >= 0xD800 && unit < 0xDC00;
    if (!leads) return unit >= 0 && (unit < 0xD800 || unit > 0xDFFF);
    if (!word("\\u")) return false;
    const int second = hexadecimal();
    return second >= 0xDC00 && second <= 0xDFFF;
  }
  /// Reads four hexadecimal digits; returns -1 if there are fewer.
  int hexadecimal() {
    int unit = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const unsigned char c = here();
      const auto lower = static_cast<unsigned char>(c | 0x20U);
      if (!is_digit(c) && (lower < 'a' || lower > 'f')) return -1;
      unit = unit * 16 + (is_digit(c) ? c - '0' : lower - 'a' + 10);
    }
    return unit;
  }
  /// Reads a character of two bytes or more. It must be in its shortest form and not a surrogate.
  bool several_bytes() {
    const std::uint8_t lead = here();
    if (lead < 0xC2 || lead > 0xF4) return false;
    const int more = lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
    const std::uint8_t least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const std::uint8_t most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    ++at_;
    if (here() < least || here() > most) return false;
    ++at_;
    for (int i = 1; i < more; ++i, ++at_) {
      if (here() < 0x80 || here() > 0xBF) return false;
    }
    return true;
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  std::size_t longest_ = 0;
};

}  // namespace lightq::inline v1::protocol::detail
