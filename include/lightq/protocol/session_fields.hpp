/// Reads and writes the fields of a session frame's body in their order. Layer: protocol.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <lightq/base/bytes.hpp>
#include <lightq/base/error.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

namespace lightq::inline v1::session {

/// Takes fields off a body in their order. It keeps the first fault and returns empty fields after it;
/// `finish` reports the fault. Lifetime: the body must outlive the parser.
class FieldParser {
 public:
  explicit FieldParser(ByteView body) : left_(body) {}

  template <typename T>
  T number() {
    static_assert(std::is_unsigned_v<T>);
    if (!has(sizeof(T), "the body is too short")) return 0;
    const T value = load_little_endian<T>(left_.data());
    left_ = left_.subspan(sizeof(T));
    return value;
  }
  /// Reads a number that must be in [least, greatest].
  template <typename T>
  T number(const char* name, T least, T greatest) {
    const T value = number<T>();
    if (!fault_ && (value < least || greatest < value)) fail(std::string(name) + " is out of its range");
    return value;
  }
  template <std::size_t size>
  std::array<std::byte, size> bytes() {
    std::array<std::byte, size> taken{};
    if (!has(size, "the body is too short")) return taken;
    std::copy_n(left_.begin(), size, taken.begin());
    left_ = left_.subspan(size);
    return taken;
  }
  template <typename T>
  void zero() {
    if (number<T>() != 0) fail("reserved bytes must be zero");
  }
  /// Reads a u16 length and that many bytes, at most `bytes_max`. Lifetime: valid as long as the body.
  std::string_view text(const char* name, std::size_t bytes_max) {
    const std::size_t bytes = number<std::uint16_t>();
    if (bytes > bytes_max) fail(std::string(name) + " is too long");
    if (!has(bytes, "the body is too short")) return {};
    const std::string_view found = as_text(left_.first(bytes));
    left_ = left_.subspan(bytes);
    return found;
  }
  [[nodiscard]] ByteView left() const { return left_; }
  void fail(std::string sentence) {
    if (!fault_) fault_ = std::move(sentence);
    left_ = {};
  }

  /// Returns `value` if all fields were valid and the body ends after them. Errors: invalid_request.
  template <typename T>
  Result<T> finish(T value) {
    if (!left_.empty()) fail("the body is too long");
    if (fault_) return Error{ErrorCode::invalid_request, *fault_, 0};
    return value;
  }

 private:
  bool has(std::size_t bytes, const char* otherwise) {
    if (!fault_ && left_.size() < bytes) fail(otherwise);
    return !fault_;
  }

  ByteView left_;
  std::optional<std::string> fault_;
};

/// Appends fields to a buffer.
class FieldWriter {
 public:
  explicit FieldWriter(std::vector<std::byte>& to) : to_(to) {}

  template <typename T>
  FieldWriter& number(T value) {
    static_assert(std::is_unsigned_v<T>);
    to_.resize(to_.size() + sizeof value);
    store_little_endian(to_.data() + to_.size() - sizeof value, value);
    return *this;
  }
  template <typename T>
  FieldWriter& zero() {
    return number(T{0});
  }
  /// Appends the length and the bytes of a text. Requires: at most 65,535 bytes.
  FieldWriter& text(std::string_view text) {
    assert(text.size() <= UINT16_MAX);
    return number(static_cast<std::uint16_t>(text.size())).bytes(as_byte_view(text));
  }
  FieldWriter& bytes(ByteView bytes) {
    to_.insert(to_.end(), bytes.begin(), bytes.end());
    return *this;
  }

 private:
  std::vector<std::byte>& to_;
};

}  // namespace lightq::inline v1::session
