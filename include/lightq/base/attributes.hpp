/// What a message may carry beside its payload: a key, headers, its producer's time. Their bytes lie in front
/// of the payload, docs/log_format.md, "Record". Layer: base.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <lightq/base/bytes.hpp>
#include <lightq/base/limits.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

namespace lightq::inline v1 {

/// A named value. Both are bytes of any kind, text as a rule; names of one message may be alike.
struct Header {
  std::string_view name;   ///< 1 to limits::header_name_bytes_max bytes
  std::string_view value;  ///< may be empty
  friend bool operator==(const Header&, const Header&) = default;
};

/// What a producer says of a message. Does not own.
struct Attributes {
  std::string_view key = {};             ///< at most limits::key_bytes_max bytes; empty: none
  std::span<const Header> headers = {};  ///< at most limits::headers_max
  Timestamp time = {};                   ///< when what it speaks of happened; 0: not said

  /// Whether they keep to their limits. Errors: invalid_argument, too_large.
  [[nodiscard]] Result<void> check() const;
};

/// Which attributes the records of a batch have, each of them all: bits of the batch's flags.
class AttributeKinds {
 public:
  static constexpr std::uint16_t keys = 1;
  static constexpr std::uint16_t headers = 2;
  static constexpr std::uint16_t times = 4;
  static constexpr std::uint16_t all = keys | headers | times;

  constexpr AttributeKinds() = default;
  constexpr explicit AttributeKinds(std::uint16_t bits) : bits_(bits) {}
  /// Those that a message makes use of.
  explicit AttributeKinds(const Attributes& attributes)
      : bits_(static_cast<std::uint16_t>((attributes.key.empty() ? 0 : keys) |
                                         (attributes.headers.empty() ? 0 : headers) |
                                         (attributes.time.us == 0 ? 0 : times))) {}

  [[nodiscard]] constexpr std::uint16_t bits() const { return bits_; }
  [[nodiscard]] constexpr bool any() const { return bits_ != 0; }
  [[nodiscard]] constexpr bool has(std::uint16_t kind) const { return (bits_ & kind) != 0; }
  [[nodiscard]] constexpr bool has_all_of(AttributeKinds other) const { return (other.bits_ & ~bits_) == 0; }
  friend constexpr AttributeKinds operator|(AttributeKinds one, AttributeKinds other) {
    return AttributeKinds(static_cast<std::uint16_t>(one.bits_ | other.bits_));
  }
  friend constexpr bool operator==(AttributeKinds, AttributeKinds) = default;

 private:
  std::uint16_t bits_ = 0;
};

/// A message's attributes where they were received or stored. Does not own; a small value.
class AttributesView {
 public:
  AttributesView() = default;
  /// Bytes that were checked, or written here.
  static AttributesView trusted(AttributeKinds kinds, const std::byte* start) { return {kinds, start}; }
  /// Whether the record (attributes and payload) begins with attributes of these kinds that keep to their
  /// limits; how many bytes they are. Nothing: it does not.
  static std::optional<std::size_t> measure(AttributeKinds kinds, ByteView record);

  [[nodiscard]] AttributeKinds kinds() const { return kinds_; }
  /// 0: the producer did not say.
  [[nodiscard]] Timestamp time() const {
    if (!kinds_.has(AttributeKinds::times)) return {};
    return {load_little_endian<std::int64_t>(start_)};
  }
  /// Empty: none.
  [[nodiscard]] std::string_view key() const {
    return kinds_.has(AttributeKinds::keys) ? text_at(start_ + key_at()) : std::string_view();
  }

  class Iterator;
  /// The headers in the order in which they were given; a range of Header.
  class Headers;
  [[nodiscard]] Headers headers() const;
  /// The value of the first header with that name; nothing: there is none.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const;

  /// How many bytes they are in a record.
  [[nodiscard]] std::size_t bytes() const;

 private:
  AttributesView(AttributeKinds kinds, const std::byte* start) : kinds_(kinds), start_(start) {}
  static std::string_view text_at(const std::byte* at) {
    const auto bytes = load_little_endian<std::uint16_t>(at);
    return as_text({at + sizeof bytes, bytes});
  }
  [[nodiscard]] std::size_t key_at() const {
    return kinds_.has(AttributeKinds::times) ? sizeof(std::int64_t) : 0;
  }
  [[nodiscard]] std::size_t headers_at() const {
    const std::size_t at = key_at();
    return kinds_.has(AttributeKinds::keys) ? at + sizeof(std::uint16_t) + key().size() : at;
  }

  AttributeKinds kinds_;
  const std::byte* start_ = nullptr;
};

/// One pass; what it points at is valid until it moves on.
class AttributesView::Iterator {
 public:
  using iterator_concept = std::forward_iterator_tag;
  using value_type = Header;
  using difference_type = std::ptrdiff_t;

  Iterator() = default;
  Iterator(const std::byte* at, std::uint16_t left) : at_(at), left_(left) {}
  Header operator*() const {
    const std::string_view name = text_at(at_);
    return {name, text_at(at_ + sizeof(std::uint16_t) + name.size())};
  }
  Iterator& operator++() {
    at_ = end_of_this();
    --left_;
    return *this;
  }
  Iterator operator++(int) {
    const Iterator before = *this;
    ++*this;
    return before;
  }
  [[nodiscard]] const std::byte* at() const { return at_; }
  bool operator==(const Iterator& other) const { return left_ == other.left_; }
  bool operator==(std::default_sentinel_t) const { return left_ == 0; }

 private:
  [[nodiscard]] const std::byte* end_of_this() const {
    const Header here = **this;
    return at_ + 2 * sizeof(std::uint16_t) + here.name.size() + here.value.size();
  }
  const std::byte* at_ = nullptr;
  std::uint16_t left_ = 0;
};

class AttributesView::Headers {
 public:
  Headers() = default;
  Headers(const std::byte* first, std::uint16_t count) : first_(first), count_(count) {}
  [[nodiscard]] Iterator begin() const { return {first_, count_}; }
  [[nodiscard]] static std::default_sentinel_t end() { return {}; }
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] bool empty() const { return count_ == 0; }

 private:
  const std::byte* first_ = nullptr;
  std::uint16_t count_ = 0;
};

inline AttributesView::Headers AttributesView::headers() const {
  if (!kinds_.has(AttributeKinds::headers)) return {};
  const std::byte* const at = start_ + headers_at();
  return {at + sizeof(std::uint16_t), load_little_endian<std::uint16_t>(at)};
}

inline std::optional<std::string_view> AttributesView::header(std::string_view name) const {
  for (const Header header : headers()) {
    if (header.name == name) return header.value;
  }
  return std::nullopt;
}

inline std::size_t AttributesView::bytes() const {
  if (!kinds_.has(AttributeKinds::headers)) return headers_at();
  Iterator at = headers().begin();
  while (at != std::default_sentinel) ++at;
  return static_cast<std::size_t>(at.at() - start_);
}

inline std::optional<std::size_t> AttributesView::measure(AttributeKinds kinds, ByteView record) {
  const ByteView most = record.first(std::min(record.size(), limits::attributes_bytes_max));
  std::size_t at = 0;
  const auto pass = [&](std::size_t bytes) {
    if (bytes > most.size() - at) return false;
    at += bytes;
    return true;
  };
  // The length of a text that begins at `at`; nothing: it is not there.
  const auto pass_text = [&]() -> std::optional<std::size_t> {
    const std::size_t begin = at;
    if (!pass(sizeof(std::uint16_t))) return std::nullopt;
    const std::size_t bytes = load_little_endian<std::uint16_t>(most.data() + begin);
    return pass(bytes) ? std::optional(bytes) : std::nullopt;
  };
  if (kinds.has(AttributeKinds::times) && !pass(sizeof(std::int64_t))) return std::nullopt;
  if (kinds.has(AttributeKinds::keys) && pass_text().value_or(SIZE_MAX) > limits::key_bytes_max)
    return std::nullopt;
  if (!kinds.has(AttributeKinds::headers)) return at;
  const std::size_t count_at = at;
  if (!pass(sizeof(std::uint16_t))) return std::nullopt;
  const std::size_t count = load_little_endian<std::uint16_t>(most.data() + count_at);
  if (count > limits::headers_max) return std::nullopt;
  for (std::size_t header = 0; header < count; ++header) {
    const std::size_t name_bytes = pass_text().value_or(0);
    if (name_bytes == 0 || name_bytes > limits::header_name_bytes_max || !pass_text()) return std::nullopt;
  }
  return at;
}

/// What is left of a sound message, attributes and payload, without its attributes.
inline ByteView payload_of(AttributeKinds kinds, ByteView message) {
  if (!kinds.any()) return message;
  return message.subspan(AttributesView::trusted(kinds, message.data()).bytes());
}

/// How many bytes a message's attributes are among records that have these kinds, which are at least its own.
inline std::size_t attributes_bytes(AttributeKinds kinds, const Attributes& attributes) {
  std::size_t bytes = 0;
  if (kinds.has(AttributeKinds::times)) bytes += sizeof(std::int64_t);
  if (kinds.has(AttributeKinds::keys)) bytes += sizeof(std::uint16_t) + attributes.key.size();
  if (!kinds.has(AttributeKinds::headers)) return bytes;
  bytes += sizeof(std::uint16_t);
  for (const Header& header : attributes.headers)
    bytes += 2 * sizeof(std::uint16_t) + header.name.size() + header.value.size();
  return bytes;
}

/// Writes that many bytes, and answers where they end. The attributes keep to their limits.
inline std::byte* write_attributes(std::byte* to, AttributeKinds kinds, const Attributes& attributes) {
  assert(kinds.has_all_of(AttributeKinds(attributes)));
  const auto write_text = [&to](std::string_view text) {
    store_little_endian(to, static_cast<std::uint16_t>(text.size()));
    to += sizeof(std::uint16_t);
    if (!text.empty()) std::memcpy(to, text.data(), text.size());
    to += text.size();
  };
  if (kinds.has(AttributeKinds::times)) {
    store_little_endian(to, attributes.time.us);
    to += sizeof(std::int64_t);
  }
  if (kinds.has(AttributeKinds::keys)) write_text(attributes.key);
  if (!kinds.has(AttributeKinds::headers)) return to;
  store_little_endian(to, static_cast<std::uint16_t>(attributes.headers.size()));
  to += sizeof(std::uint16_t);
  for (const Header& header : attributes.headers) {
    write_text(header.name);
    write_text(header.value);
  }
  return to;
}

inline Result<void> Attributes::check() const {
  const auto too_large = [](const std::string& what, std::size_t most) {
    return Error{ErrorCode::too_large, what + " than " + std::to_string(most)};
  };
  if (key.size() > limits::key_bytes_max)
    return too_large("a key of " + std::to_string(key.size()) + " bytes is longer", limits::key_bytes_max);
  if (headers.size() > limits::headers_max)
    return too_large(std::to_string(headers.size()) + " headers are more", limits::headers_max);
  for (const Header& header : headers) {
    if (header.name.empty()) return Error{ErrorCode::invalid_argument, "a header without a name"};
    if (header.name.size() > limits::header_name_bytes_max)
      return too_large("the name of a header is longer", limits::header_name_bytes_max);
  }
  // So that a message keeps to it among others with attributes that it has not.
  const std::size_t bytes = attributes_bytes(AttributeKinds(AttributeKinds::all), *this);
  if (bytes <= limits::attributes_bytes_max) return {};
  return too_large("key and headers of " + std::to_string(bytes) + " bytes are longer",
                   limits::attributes_bytes_max);
}

}  // namespace lightq::inline v1
