/// Session frames of consumers. docs/session.md, "Consuming". Layer: protocol.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <lightq/protocol/session_link.hpp>

namespace lightq::inline v1::session {

inline constexpr std::uint32_t credit_messages_max = 1U << 31U;
inline constexpr std::uint64_t credit_bytes_max = std::uint64_t{1} << 62U;

/// Whether consumers share the messages. The values are those on the wire.
enum class Mode : std::uint8_t { group = 1, own = 2 };
/// Whether the consumer acknowledges messages, or the broker counts them as acknowledged when it sends them.
enum class Acknowledgement : std::uint8_t { by_consumer = 1, automatic = 2 };
/// Where a group or cursor starts, or where a seek moves it.
enum class From : std::uint8_t { first = 1, next = 2, last = 3, offset = 4, time = 5 };

/// A start position in a topic.
struct Place {
  From from = From::first;
  std::uint64_t value = 0;  ///< an offset, or microseconds since 1970, by `from`; otherwise 0
  friend bool operator==(const Place&, const Place&) = default;
};

namespace detail {

inline From read_from(FieldParser& fields) {
  return static_cast<From>(fields.number<std::uint8_t>("start", 1, 5));
}
inline std::uint64_t read_place_value(FieldParser& fields, From from) {
  const auto value = fields.number<std::uint64_t>();
  if (value != 0 && from != From::offset && from != From::time)
    fields.fail("a start other than an offset or a time must have the value 0");
  return value;
}

}  // namespace detail

struct ConsumeOpen {
  static constexpr Op op = Op::consume_open;
  Mode mode = Mode::group;
  Acknowledgement acknowledgement = Acknowledgement::by_consumer;
  Place start;  ///< for a group or cursor that does not exist yet
  bool holds = false;
  std::uint32_t credit_messages = 0;
  std::uint64_t credit_bytes = 0;
  std::uint64_t incarnation = 0;  ///< the log that `start` refers to; 0: any
  std::uint32_t ack_timeout_ms = 0;
  std::string topic;
  std::string group;

  static Result<ConsumeOpen> decode(ByteView body, std::uint8_t /*flags*/) {
    FieldParser fields(body);
    ConsumeOpen open;
    open.mode = static_cast<Mode>(fields.number<std::uint8_t>("mode", 1, 2));
    open.acknowledgement = static_cast<Acknowledgement>(fields.number<std::uint8_t>("acknowledgement", 1, 2));
    open.start.from = detail::read_from(fields);
    open.holds = fields.number<std::uint8_t>("holds", 0, 1) == 1;
    open.credit_messages = fields.number<std::uint32_t>("credit", 0, credit_messages_max);
    open.credit_bytes = fields.number<std::uint64_t>("credit", 0, credit_bytes_max);
    open.start.value = detail::read_place_value(fields, open.start.from);
    open.incarnation = fields.number<std::uint64_t>();
    open.ack_timeout_ms = fields.number<std::uint32_t>();
    fields.zero<std::uint32_t>();
    fields.zero<std::uint64_t>();
    open.topic = fields.text("the topic", limits::topic_name_bytes_max);
    if (open.topic.empty()) fields.fail("the topic is missing");
    open.group = fields.text("the group", limits::topic_name_bytes_max);
    fields.text("the reserved field for filters", 0);
    return fields.finish(std::move(open));
  }
  void encode(FieldWriter fields) const {
    fields.number(static_cast<std::uint8_t>(mode)).number(static_cast<std::uint8_t>(acknowledgement));
    fields.number(static_cast<std::uint8_t>(start.from)).number(static_cast<std::uint8_t>(holds ? 1 : 0));
    fields.number(credit_messages).number(credit_bytes).number(start.value).number(incarnation);
    fields.number(ack_timeout_ms).zero<std::uint32_t>().zero<std::uint64_t>();
    fields.text(topic).text(group).text("");
  }
  friend bool operator==(const ConsumeOpen&, const ConsumeOpen&) = default;
};

struct ConsumeOpened {
  static constexpr Op op = Op::consume_opened;
  std::uint64_t next = 0;       ///< the offset of the next message to deliver
  std::uint64_t committed = 0;  ///< everything below it is acknowledged
  std::uint64_t next_offset = 0;
  std::uint64_t incarnation = 0;
  std::uint32_t ack_timeout_ms = 0;  ///< with leases: the processing timeout; 0: none
  bool leases = false;               ///< the consumer has leases, and its requests name hand-outs
  bool dead_letters = false;         ///< the broker accepts rejections that make messages dead

  [[nodiscard]] std::uint8_t flags() const {
    return static_cast<std::uint8_t>((leases ? flag_leases : 0) | (dead_letters ? flag_dead_letters : 0));
  }
  static Result<ConsumeOpened> decode(ByteView body, std::uint8_t flags) {
    FieldParser fields(body);
    ConsumeOpened opened;
    opened.leases = (flags & flag_leases) != 0;
    opened.dead_letters = (flags & flag_dead_letters) != 0;
    opened.next = fields.number<std::uint64_t>();
    opened.committed = fields.number<std::uint64_t>();
    opened.next_offset = fields.number<std::uint64_t>();
    opened.incarnation = fields.number<std::uint64_t>();
    opened.ack_timeout_ms = fields.number<std::uint32_t>();
    fields.zero<std::uint32_t>();
    return fields.finish(opened);
  }
  void encode(FieldWriter fields) const {
    fields.number(next).number(committed).number(next_offset).number(incarnation);
    fields.number(ack_timeout_ms).zero<std::uint32_t>();
  }
  friend bool operator==(const ConsumeOpened&, const ConsumeOpened&) = default;
};

/// The fields in front of the batch in a `deliver` frame.
struct DeliverHead {
  std::uint32_t delivery = 0;  ///< number of deliveries of these messages, this one included; 0: answer to a
                               ///< read
  std::uint32_t hand_out = 0;  ///< number of the hand-out; 0 if the consumer has no leases
  std::uint64_t lost = 0;      ///< messages between the previous delivery and this one that are no longer
                               ///< available

  static Result<DeliverHead> decode(ByteView head) {
    FieldParser fields(head);
    DeliverHead decoded;
    decoded.delivery = fields.number<std::uint32_t>();
    decoded.hand_out = fields.number<std::uint32_t>();
    decoded.lost = fields.number<std::uint64_t>();
    return fields.finish(decoded);
  }
  /// Writes exactly `deliver_head_bytes`.
  void encode(FieldWriter fields) const { fields.number(delivery).number(hand_out).number(lost); }
  friend bool operator==(const DeliverHead&, const DeliverHead&) = default;
};

/// Raises the number of messages and bytes that the broker may send.
struct Credit {
  static constexpr Op op = Op::credit;
  std::uint32_t messages = 0;
  std::uint64_t bytes = 0;

  static Result<Credit> decode(ByteView body, std::uint8_t /*flags*/) {
    FieldParser fields(body);
    Credit credit;
    credit.messages = fields.number<std::uint32_t>("messages", 0, credit_messages_max);
    credit.bytes = fields.number<std::uint64_t>("bytes", 0, credit_bytes_max);
    return fields.finish(credit);
  }
  void encode(FieldWriter fields) const { fields.number(messages).number(bytes); }
  friend bool operator==(const Credit&, const Credit&) = default;
};

namespace detail {

/// Reads one or more ranges. They must be ascending, not empty, and separated by gaps.
inline std::vector<OffsetRange> read_ranges(FieldParser& fields) {
  std::vector<OffsetRange> ranges;
  if (fields.left().size() % 16 != 0 || fields.left().empty()) fields.fail("a range is incomplete");
  ranges.reserve(fields.left().size() / 16);
  while (!fields.left().empty()) {
    const OffsetRange range{{fields.number<std::uint64_t>()}, {fields.number<std::uint64_t>()}};
    const bool ascends = range.begin < range.end && (ranges.empty() || ranges.back().end < range.begin);
    if (!ascends) fields.fail("ranges must ascend and not touch one another");
    ranges.push_back(range);
  }
  return ranges;
}
inline void write_ranges(FieldWriter& fields, const std::vector<OffsetRange>& ranges) {
  for (const OffsetRange& range : ranges) fields.number(range.begin.value).number(range.end.value);
}
/// Reads everything before an offset, if the flag says so, or ranges.
template <typename Body>
void read_ranges_or_before(FieldParser& fields, std::uint8_t flags, Body& body) {
  if ((flags & flag_cumulative) != 0) {
    body.before = Offset{fields.number<std::uint64_t>()};
  } else {
    body.ranges = read_ranges(fields);
  }
}
template <typename Body>
void write_ranges_or_before(FieldWriter& fields, const Body& body) {
  if (body.before) {
    fields.number(body.before->value);
  } else {
    write_ranges(fields, body.ranges);
  }
}

}  // namespace detail

/// Acknowledges messages.
struct Acknowledge {
  static constexpr Op op = Op::acknowledge;
  std::optional<Offset> before;     ///< cumulative: everything below this offset; then there are no ranges
  std::vector<OffsetRange> ranges;  ///< otherwise at least one
  std::optional<std::uint32_t> hand_out = std::nullopt;  ///< of the messages; nothing without leases

  [[nodiscard]] std::uint8_t flags() const {
    return static_cast<std::uint8_t>((before ? flag_cumulative : 0) | (hand_out ? flag_hand_out : 0));
  }
  static Result<Acknowledge> decode(ByteView body, std::uint8_t flags) {
    FieldParser fields(body);
    Acknowledge acknowledge;
    if ((flags & flag_hand_out) != 0) {
      acknowledge.hand_out = fields.number<std::uint32_t>();
      fields.zero<std::uint32_t>();
    }
    detail::read_ranges_or_before(fields, flags, acknowledge);
    return fields.finish(std::move(acknowledge));
  }
  void encode(FieldWriter fields) const {
    if (hand_out) fields.number(*hand_out).zero<std::uint32_t>();
    detail::write_ranges_or_before(fields, *this);
  }
  friend bool operator==(const Acknowledge&, const Acknowledge&) = default;
};

/// Frames `reject` and `extend`: messages and a time. A rejected message is delivered again after the time,
/// unless it is dead; for an extended one the broker waits that much longer for the acknowledgement.
template <Op which>
struct Postpone {
  static constexpr Op op = which;
  std::uint32_t ms = 0;                                  ///< 0 for a release, and for dead messages
  std::vector<OffsetRange> ranges;                       ///< at least one
  std::optional<std::uint32_t> hand_out = std::nullopt;  ///< of the messages; nothing without leases
  /// The messages were not begun, so this delivery does not count. Only a `reject` can release.
  std::conditional_t<which == Op::reject, bool, std::false_type> releases{};
  /// `reject`: the messages are dead, for this reason. At most dead_reason_bytes_max. Not with `releases`.
  std::optional<std::string> dead_reason = std::nullopt;

  [[nodiscard]] std::uint8_t flags() const {
    return static_cast<std::uint8_t>((hand_out ? flag_hand_out : 0) | (releases ? flag_release : 0) |
                                     (dead_reason ? flag_dead_letter : 0));
  }
  static Result<Postpone> decode(ByteView body, std::uint8_t flags) {
    FieldParser fields(body);
    Postpone postpone;
    if constexpr (which == Op::reject) postpone.releases = (flags & flag_release) != 0;
    const bool is_dead = which == Op::reject && (flags & flag_dead_letter) != 0;
    if (is_dead && postpone.releases) fields.fail("a release cannot make messages dead");
    postpone.ms = fields.number<std::uint32_t>("the delay", 0, postpone.releases || is_dead ? 0 : UINT32_MAX);
    if ((flags & flag_hand_out) != 0) postpone.hand_out = fields.number<std::uint32_t>();
    if (is_dead) postpone.dead_reason = fields.text("the reason", dead_reason_bytes_max);
    postpone.ranges = detail::read_ranges(fields);
    return fields.finish(std::move(postpone));
  }
  void encode(FieldWriter fields) const {
    fields.number(ms);
    if (hand_out) fields.number(*hand_out);
    if (dead_reason) fields.text(*dead_reason);
    detail::write_ranges(fields, ranges);
  }
  friend bool operator==(const Postpone&, const Postpone&) = default;
};
using Reject = Postpone<Op::reject>;
using Extend = Postpone<Op::extend>;

/// Reports messages that were acknowledged too late: they have been requeued for other consumers.
struct Late {
  static constexpr Op op = Op::late;
  std::vector<OffsetRange> ranges;  ///< at least one

  static Result<Late> decode(ByteView body, std::uint8_t /*flags*/) {
    FieldParser fields(body);
    Late late{detail::read_ranges(fields)};
    return fields.finish(std::move(late));
  }
  void encode(FieldWriter fields) const { detail::write_ranges(fields, ranges); }
  friend bool operator==(const Late&, const Late&) = default;
};

/// Tells which messages the program has begun to process, or is about to.
struct Started {
  static constexpr Op op = Op::started;
  std::uint32_t hand_out = 0;       ///< of the messages
  std::optional<Offset> before;     ///< cumulative: everything below this offset; then there are no ranges
  std::vector<OffsetRange> ranges;  ///< otherwise at least one

  [[nodiscard]] std::uint8_t flags() const { return before ? flag_cumulative : std::uint8_t{0}; }
  static Result<Started> decode(ByteView body, std::uint8_t flags) {
    FieldParser fields(body);
    Started started;
    started.hand_out = fields.number<std::uint32_t>();
    fields.zero<std::uint32_t>();
    detail::read_ranges_or_before(fields, flags, started);
    return fields.finish(std::move(started));
  }
  void encode(FieldWriter fields) const {
    fields.number(hand_out).zero<std::uint32_t>();
    detail::write_ranges_or_before(fields, *this);
  }
  friend bool operator==(const Started&, const Started&) = default;
};

/// Why the broker has taken messages back. The values are those on the wire.
enum class RevokeCause : std::uint8_t {
  processing_timeout = 1,
  silent = 2,  ///< the client was silent, had not started the messages, and another consumer could take them
  seek = 3,
  purge = 4,
  rights = 5,         ///< the right to consume was withdrawn
  group_deleted = 6,  ///< reserved: a group with consumers cannot be deleted
  key_order = 7,      ///< reserved for order by key
};

/// Reports messages that the broker has taken back: the consumer no longer has them.
struct Revoked {
  static constexpr Op op = Op::revoked;
  RevokeCause cause = RevokeCause::silent;  ///< may be a cause that this version does not know
  std::uint32_t before = 0;                 ///< hand-outs with lower numbers are over for these messages
  std::vector<OffsetRange> ranges;          ///< at least one

  static Result<Revoked> decode(ByteView body, std::uint8_t /*flags*/) {
    FieldParser fields(body);
    Revoked revoked;
    revoked.cause = static_cast<RevokeCause>(fields.number<std::uint8_t>("the cause", 1, UINT8_MAX));
    fields.zero<std::uint8_t>();
    fields.zero<std::uint16_t>();
    revoked.before = fields.number<std::uint32_t>();
    revoked.ranges = detail::read_ranges(fields);
    return fields.finish(std::move(revoked));
  }
  void encode(FieldWriter fields) const {
    fields.number(static_cast<std::uint8_t>(cause)).zero<std::uint8_t>().zero<std::uint16_t>();
    fields.number(before);
    detail::write_ranges(fields, ranges);
  }
  friend bool operator==(const Revoked&, const Revoked&) = default;
};

/// Moves the cursor of a group or consumer.
struct Seek {
  static constexpr Op op = Op::seek;
  Place to;

  static Result<Seek> decode(ByteView body, std::uint8_t /*flags*/) {
    FieldParser fields(body);
    Seek seek;
    seek.to.from = detail::read_from(fields);
    fields.zero<std::uint8_t>();
    fields.zero<std::uint16_t>();
    fields.zero<std::uint32_t>();
    seek.to.value = detail::read_place_value(fields, seek.to.from);
    return fields.finish(seek);
  }
  void encode(FieldWriter fields) const {
    fields.number(static_cast<std::uint8_t>(to.from)).zero<std::uint8_t>().zero<std::uint16_t>();
    fields.zero<std::uint32_t>().number(to.value);
  }
  friend bool operator==(const Seek&, const Seek&) = default;
};

/// Asks for messages without a group.
struct Read {
  static constexpr Op op = Op::read;
  OffsetRange range;
  std::uint64_t bytes = 0;  ///< the most bytes of payload
  std::string topic;

  static Result<Read> decode(ByteView body, std::uint8_t /*flags*/) {
    FieldParser fields(body);
    Read read;
    read.range.begin.value = fields.number<std::uint64_t>();
    read.range.end.value = fields.number<std::uint64_t>("end", read.range.begin.value, UINT64_MAX);
    read.bytes = fields.number<std::uint64_t>();
    read.topic = fields.text("the topic", limits::topic_name_bytes_max);
    if (read.topic.empty()) fields.fail("the topic is missing");
    return fields.finish(std::move(read));
  }
  void encode(FieldWriter fields) const {
    fields.number(range.begin.value).number(range.end.value).number(bytes).text(topic);
  }
  friend bool operator==(const Read&, const Read&) = default;
};

}  // namespace lightq::inline v1::session
