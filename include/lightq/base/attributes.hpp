/// A message's attributes: key, headers, producer's time and due time. They are stored before the payload,
/// docs/log_format.md, "Record". Layer: base.
#pragma once

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <lightq/base/bytes.hpp>
#include <lightq/base/due.hpp>
#include <lightq/base/limits.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/ttl.hpp>
#include <lightq/base/types.hpp>

namespace lightq::inline v1 {

/// A named value. Name and value are arbitrary bytes, usually text. A message may have several headers of one
/// name.
struct Header {
  std::string_view name;   ///< 1 to limits::header_name_bytes_max bytes
  std::string_view value;  ///< may be empty
  friend bool operator==(const Header&, const Header&) = default;
};

/// The beginning of the names of headers that only the broker sets, on dead letters. Producers may not send
/// such headers.
inline constexpr std::string_view dead_header_prefix = "lightq-dead-";

/// The name of the header that is a message's id.
inline constexpr std::string_view id_header_name = "lightq-id";

/// The attributes that a producer gives a message. Does not own its data.
struct Attributes {
  std::string_view key = {};             ///< at most limits::key_bytes_max bytes; empty: none
  std::span<const Header> headers = {};  ///< at most limits::headers_max, the id and the ttl included
  Timestamp time = {};                   ///< when the event that the message describes happened; 0: not given
  /// The time after which the message is due, counted from its arrival in the topic's schedule: 0 to
  /// limits::delay_us_max. 0: none. Only for a producer with ProducerOptions::delayed.
  std::chrono::microseconds delay = {};
  /// The time at which the message is due, instead of a delay: at most limits::delay_us_max ahead. A past
  /// time: at once. 0: none. Only for a producer with ProducerOptions::delayed.
  Timestamp deliver_at = {};
  /// An id that the program chooses, at most limits::message_id_bytes_max bytes; empty: none. It is sent as
  /// the first header, with the name id_header_name.
  std::string_view id = {};
  /// The message's time to live, counted from its append to the log: 1 ms to limits::ttl_ms_max. After it,
  /// the broker delivers the message to no consumer any more. 0: none. It is sent as a header, behind the id
  /// and before the others, with the name ttl_header_name.
  std::chrono::milliseconds ttl = {};

  /// Returns the due time as a record has it; see due.hpp. 0: at once.
  [[nodiscard]] std::int64_t due() const { return delay.count() > 0 ? -delay.count() : deliver_at.us; }
  /// Returns true if the producer gave a delay or a due time.
  [[nodiscard]] bool has_due() const { return delay.count() != 0 || deliver_at.us != 0; }
  /// Returns the number of headers in a record: `headers`, the id and the ttl.
  [[nodiscard]] std::size_t header_count() const {
    return headers.size() + (id.empty() ? 0 : 1) + (ttl.count() == 0 ? 0 : 1);
  }

  /// Checks that the attributes are within their limits. Errors: invalid_argument, too_large.
  [[nodiscard]] Result<void> check() const;
  /// Checks as `check` does, and that no header begins with dead_header_prefix, for a producer: the broker
  /// refuses the whole batch of such a message. Also checks headers that are the message's id or ttl. Errors:
  /// invalid_argument, too_large.
  [[nodiscard]] Result<void> check_for_producer() const;

 private:
  [[nodiscard]] Result<void> check_due() const;
};

/// A set of attribute kinds, as bits of a batch's flags. Each record of the batch has all attributes of the
/// set.
class AttributeKinds {
 public:
  static constexpr std::uint16_t keys = 1;
  static constexpr std::uint16_t headers = 2;
  static constexpr std::uint16_t times = 4;
  static constexpr std::uint16_t dues = 8;                      ///< only in a topic's schedule
  static constexpr std::uint16_t all = keys | headers | times;  ///< that messages in a topic's log may have
  static constexpr std::uint16_t known = all | dues;            ///< that this version knows

  constexpr AttributeKinds() = default;
  constexpr explicit AttributeKinds(std::uint16_t bits) : bits_(bits) {}
  /// Makes the set of the kinds that a message uses.
  explicit AttributeKinds(const Attributes& attributes)
      : bits_(static_cast<std::uint16_t>(
            (attributes.key.empty() ? 0 : keys) | (attributes.header_count() == 0 ? 0 : headers) |
            (attributes.time.us == 0 ? 0 : times) | (attributes.has_due() ? dues : 0))) {}

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

/// A view of a message's attributes as received or stored. Does not own its data; a small value.
class AttributesView {
 public:
  AttributesView() = default;
  /// Makes a view of attributes at `start`. Requires: they were checked by `measure`, or written by this
  /// process.
  static AttributesView trusted(AttributeKinds kinds, const std::byte* start) { return {kinds, start}; }
  /// Returns the length in bytes of the attributes with which `record` (attributes and payload) begins.
  /// Returns nothing if the record does not begin with attributes of these kinds within their limits.
  static std::optional<std::size_t> measure(AttributeKinds kinds, ByteView record);

  [[nodiscard]] AttributeKinds kinds() const { return kinds_; }
  /// Returns the due time as the record has it, see due.hpp; 0 if it has none.
  [[nodiscard]] std::int64_t due() const {
    return kinds_.has(AttributeKinds::dues) ? load_little_endian<std::int64_t>(start_) : 0;
  }
  /// Returns the producer's time; 0 if the producer gave none.
  [[nodiscard]] Timestamp time() const {
    if (!kinds_.has(AttributeKinds::times)) return {};
    return {load_little_endian<std::int64_t>(start_ + time_at())};
  }
  /// Returns the key; empty if there is none.
  [[nodiscard]] std::string_view key() const {
    return kinds_.has(AttributeKinds::keys) ? text_at(start_ + key_at()) : std::string_view();
  }

  class Iterator;
  /// A range of Header, in the producer's order.
  class Headers;
  [[nodiscard]] Headers headers() const;
  /// Returns the value of the first header with this name, or nothing if there is none.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const;
  /// Returns the message's id; empty if it has none.
  [[nodiscard]] std::string_view id() const { return header(id_header_name).value_or(std::string_view()); }

  /// Returns the length of the attributes in a record, in bytes.
  [[nodiscard]] std::size_t bytes() const;

 private:
  AttributesView(AttributeKinds kinds, const std::byte* start) : kinds_(kinds), start_(start) {}
  static std::string_view text_at(const std::byte* at) {
    const auto bytes = load_little_endian<std::uint16_t>(at);
    return as_text({at + sizeof bytes, bytes});
  }
  [[nodiscard]] std::size_t time_at() const {
    return kinds_.has(AttributeKinds::dues) ? sizeof(std::int64_t) : 0;
  }
  [[nodiscard]] std::size_t key_at() const {
    return time_at() + (kinds_.has(AttributeKinds::times) ? sizeof(std::int64_t) : 0);
  }
  [[nodiscard]] std::size_t headers_at() const {
    const std::size_t at = key_at();
    return kinds_.has(AttributeKinds::keys) ? at + sizeof(std::uint16_t) + key().size() : at;
  }

  AttributeKinds kinds_;
  const std::byte* start_ = nullptr;
};

/// A forward iterator. Lifetime: the texts of a Header are valid as long as the record.
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
  // Passes over a text at `at`. Returns its length, or nothing if it is incomplete.
  const auto pass_text = [&]() -> std::optional<std::size_t> {
    const std::size_t begin = at;
    if (!pass(sizeof(std::uint16_t))) return std::nullopt;
    const std::size_t bytes = load_little_endian<std::uint16_t>(most.data() + begin);
    return pass(bytes) ? std::optional(bytes) : std::nullopt;
  };
  if (kinds.has(AttributeKinds::dues) && !pass(sizeof(std::int64_t))) return std::nullopt;
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

/// Returns the payload of a message (attributes and payload). Requires: the message was checked.
inline ByteView payload_of(AttributeKinds kinds, ByteView message) {
  if (!kinds.any()) return message;
  return message.subspan(AttributesView::trusted(kinds, message.data()).bytes());
}

/// Returns the length of a message's attributes in a batch of these kinds. Requires: `kinds` includes the
/// message's own kinds.
inline std::size_t attributes_bytes(AttributeKinds kinds, const Attributes& attributes) {
  const auto header_bytes = [](const Header& header) {
    return 2 * sizeof(std::uint16_t) + header.name.size() + header.value.size();
  };
  std::size_t bytes = 0;
  if (kinds.has(AttributeKinds::dues)) bytes += sizeof(std::int64_t);
  if (kinds.has(AttributeKinds::times)) bytes += sizeof(std::int64_t);
  if (kinds.has(AttributeKinds::keys)) bytes += sizeof(std::uint16_t) + attributes.key.size();
  if (!kinds.has(AttributeKinds::headers)) return bytes;
  bytes += sizeof(std::uint16_t);
  if (!attributes.id.empty()) bytes += header_bytes({id_header_name, attributes.id});
  if (attributes.ttl.count() != 0) bytes += header_bytes({ttl_header_name, TtlText(attributes.ttl).text()});
  for (const Header& header : attributes.headers) bytes += header_bytes(header);
  return bytes;
}

/// Writes the attributes at `to`. Returns the end of the attributes_bytes(kinds, attributes) bytes. Requires:
/// the attributes passed check(), and `kinds` includes their own kinds.
inline std::byte* write_attributes(std::byte* to, AttributeKinds kinds, const Attributes& attributes) {
  assert(kinds.has_all_of(AttributeKinds(attributes)));
  const auto write_text = [&to](std::string_view text) {
    store_little_endian(to, static_cast<std::uint16_t>(text.size()));
    to += sizeof(std::uint16_t);
    if (!text.empty()) std::memcpy(to, text.data(), text.size());
    to += text.size();
  };
  const auto write_time = [&to](std::int64_t us) {
    store_little_endian(to, us);
    to += sizeof us;
  };
  const auto write_header = [&](const Header& header) {
    write_text(header.name);
    write_text(header.value);
  };
  if (kinds.has(AttributeKinds::dues)) write_time(attributes.due());
  if (kinds.has(AttributeKinds::times)) write_time(attributes.time.us);
  if (kinds.has(AttributeKinds::keys)) write_text(attributes.key);
  if (!kinds.has(AttributeKinds::headers)) return to;
  store_little_endian(to, static_cast<std::uint16_t>(attributes.header_count()));
  to += sizeof(std::uint16_t);
  if (!attributes.id.empty()) write_header({id_header_name, attributes.id});
  if (attributes.ttl.count() != 0) write_header({ttl_header_name, TtlText(attributes.ttl).text()});
  for (const Header& header : attributes.headers) write_header(header);
  return to;
}

inline Result<void> Attributes::check() const {
  const auto too_large = [](const std::string& what, std::size_t most) {
    return Error{ErrorCode::too_large, what + " than " + std::to_string(most)};
  };
  if (key.size() > limits::key_bytes_max)
    return too_large("a key of " + std::to_string(key.size()) + " bytes is longer", limits::key_bytes_max);
  if (header_count() > limits::headers_max)
    return too_large(std::to_string(header_count()) + " headers are more", limits::headers_max);
  if (id.size() > limits::message_id_bytes_max)
    return too_large("an id of " + std::to_string(id.size()) + " bytes is longer",
                     limits::message_id_bytes_max);
  if (ttl.count() < 0 || ttl.count() > limits::ttl_ms_max)
    return Error{ErrorCode::invalid_argument, "a ttl is 1 ms to ten years (3,653 days)"};
  for (const Header& header : headers) {
    if (header.name.empty()) return Error{ErrorCode::invalid_argument, "a header without a name"};
    if (header.name.size() > limits::header_name_bytes_max)
      return too_large("the name of a header is longer in bytes", limits::header_name_bytes_max);
  }
  if (const Result<void> due_checked = check_due(); !due_checked) return due_checked;
  // Counts all kinds: in a batch, a message also stores the empty attributes of kinds that it does not use
  // itself.
  const AttributeKinds possible(
      static_cast<std::uint16_t>(AttributeKinds::all | (has_due() ? AttributeKinds::dues : 0)));
  const std::size_t bytes = attributes_bytes(possible, *this);
  if (bytes <= limits::attributes_bytes_max) return {};
  return too_large("key and headers of " + std::to_string(bytes) + " bytes are longer",
                   limits::attributes_bytes_max);
}

inline Result<void> Attributes::check_due() const {
  const auto invalid = [](const char* why) { return Error{ErrorCode::invalid_argument, why}; };
  if (delay.count() < 0) return invalid("a delay cannot be negative");
  if (deliver_at.us < 0) return invalid("a message cannot be due before 1970");
  if (delay.count() > 0 && deliver_at.us > 0) return invalid("a message has a delay or a due time, not both");
  if (delay.count() > limits::delay_us_max) return invalid("a delay is at most ten years (3,653 days)");
  return {};
}

inline Result<void> Attributes::check_for_producer() const {
  const auto invalid = [](const std::string& why) { return Error{ErrorCode::invalid_argument, why}; };
  bool has_id = !id.empty();
  bool has_ttl = ttl.count() != 0;
  for (const Header& header : headers) {
    if (header.name.starts_with(dead_header_prefix))
      return invalid("only the broker sets headers that begin with " + std::string(dead_header_prefix));
    if (header.name == id_header_name) {
      if (std::exchange(has_id, true)) return invalid("a message has only one id");
      if (header.value.empty() || header.value.size() > limits::message_id_bytes_max)
        return invalid("the header lightq-id has 1 to " + std::to_string(limits::message_id_bytes_max) +
                       " bytes");
    } else if (header.name == ttl_header_name) {
      if (std::exchange(has_ttl, true)) return invalid("a message has only one ttl");
      if (!ttl_in(header.value))
        return invalid("the header " + std::string(ttl_header_name) + " is a number of milliseconds, 1 to " +
                       std::to_string(limits::ttl_ms_max));
    }
  }
  return check();
}

}  // namespace lightq::inline v1
