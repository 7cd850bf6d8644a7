/// Frames that begin and end a session, and frames that answer any request. docs/session.md, "Beginning and
/// end". Layer: protocol.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lightq/base/codec.hpp>
#include <lightq/base/secret.hpp>
#include <lightq/protocol/session_fields.hpp>
#include <lightq/protocol/session_frame.hpp>

namespace lightq::inline v1::session {

inline constexpr std::uint32_t hello_magic = 0x5353514C;  // "LQSS"
inline constexpr std::uint32_t frame_bytes_least = 64 * limits::KiB;
inline constexpr std::uint32_t frame_bytes_greatest = 2U << 30U;
/// Bit in the codecs field of a hello: the client keeps the secret of each producer id, and presents it when
/// it opens the producer again.
inline constexpr std::uint32_t keeps_producer_secrets = 1U << 31U;
/// Bit in the codecs field of a hello: the broker does not end the session for the client's silence while the
/// client has messages to acknowledge.
inline constexpr std::uint32_t hello_may_be_busy = 1U << 29U;
/// Bit in the codecs field of a hello: the client tells which messages it has started, and has leases on its
/// messages instead of acknowledge timeouts.
inline constexpr std::uint32_t hello_knows_leases = 1U << 28U;
/// Bit in the codecs field of a hello: the client knows flag_dead_letters of `consume_opened`.
inline constexpr std::uint32_t hello_knows_dead_letters = 1U << 27U;
/// Bit in the codecs field of a hello: the client knows flag_expired of `deliver`.
inline constexpr std::uint32_t hello_knows_expired = 1U << 26U;
/// Bit in the codecs field of a hello: the broker reports acknowledgements that come too late.
inline constexpr std::uint32_t hello_hears_late = 1U << 30U;
inline constexpr std::uint32_t heartbeat_ms_least = 100;
inline constexpr std::uint32_t heartbeat_ms_greatest = 3'600'000;
/// At least this many bytes of an unfinished frame count as a sign of life. Fewer do not: after a damaged
/// length they may be heartbeats that are taken for the frame's body.
inline constexpr std::size_t heard_bytes_least = 1 * limits::KiB;
inline constexpr std::size_t client_name_bytes_max = 128;
inline constexpr std::size_t ticket_bytes_max = 512;
inline constexpr std::size_t sentence_bytes_max = 512;
inline constexpr std::size_t dead_reason_bytes_max = 256;

/// The codes of `error`, `refuse` and `goodbye`. The values are those on the wire; they never change.
enum class Code : std::uint16_t {
  ok = 0,
  invalid_frame = 1,
  unsupported_version = 2,
  unauthorized_access = 3,
  topic_not_found = 4,
  unknown_channel = 5,
  limit_reached = 6,
  too_large = 7,
  corrupt = 8,
  out_of_sequence = 9,
  fenced = 10,
  unknown_producer = 11,
  no_space = 12,
  io_error = 13,
  incarnation_changed = 14,
  shutting_down = 15,
  topic_deleted = 16,
  not_supported = 17,
  idle = 18,
  internal = 19,
};

inline constexpr std::array<std::string_view, 20> code_words = {"ok",
                                                                "invalid_frame",
                                                                "unsupported_version",
                                                                "unauthorized_access",
                                                                "topic_not_found",
                                                                "unknown_channel",
                                                                "limit_reached",
                                                                "too_large",
                                                                "corrupt",
                                                                "out_of_sequence",
                                                                "fenced",
                                                                "unknown_producer",
                                                                "no_space",
                                                                "io_error",
                                                                "incarnation_changed",
                                                                "shutting_down",
                                                                "topic_deleted",
                                                                "not_supported",
                                                                "idle",
                                                                "internal"};

/// Returns the word of a code; "internal" for a code that this version does not know.
constexpr std::string_view to_word(Code code) {
  const auto value = static_cast<std::size_t>(code);
  return code_words.at(value < code_words.size() ? value : static_cast<std::size_t>(Code::internal));
}

namespace detail {

inline std::uint32_t read_heartbeat(FieldParser& fields) {
  const auto ms = fields.number<std::uint32_t>("heartbeat_ms", 0, heartbeat_ms_greatest);
  if (ms != 0 && ms < heartbeat_ms_least) fields.fail("heartbeat_ms is out of its range");
  return ms;
}

}  // namespace detail

/// The client's first frame: its ticket, its name, and the versions and codecs that it understands.
struct Hello {
  static constexpr Op op = Op::hello;
  std::uint16_t oldest_version = version_oldest;
  std::uint16_t newest_version = version_newest;
  std::uint32_t frame_bytes_max = frame_bytes_least;  ///< the longest body that the client accepts
  std::uint32_t heartbeat_ms = 0;  ///< the interval of heartbeats that the client asks the broker for; 0:
                                   ///< none
  CodecSet codecs;                 ///< codecs of batches that the client can read; may have bits unknown to
                                   ///< this version
  std::string name;
  Secret ticket;

  static Result<Hello> decode(ByteView body, std::uint8_t /*flags*/) {
    FieldParser fields(body);
    fields.number<std::uint32_t>("the magic", hello_magic, hello_magic);
    Hello hello;
    hello.oldest_version = fields.number<std::uint16_t>();
    hello.newest_version = fields.number<std::uint16_t>("newest_version", hello.oldest_version, UINT16_MAX);
    hello.frame_bytes_max =
        fields.number<std::uint32_t>("frame_bytes_max", frame_bytes_least, frame_bytes_greatest);
    hello.heartbeat_ms = detail::read_heartbeat(fields);
    hello.codecs = CodecSet(fields.number<std::uint32_t>());
    hello.name = fields.text("the name", client_name_bytes_max);
    hello.ticket = fields.text("the ticket", ticket_bytes_max);
    return fields.finish(std::move(hello));
  }
  void encode(FieldWriter fields) const {
    fields.number(hello_magic).number(oldest_version).number(newest_version).number(frame_bytes_max);
    fields.number(heartbeat_ms).number(codecs.bits()).text(name).text(ticket.expose());
  }
  friend bool operator==(const Hello&, const Hello&) = default;
};

/// The broker's answer to a hello: the protocol version of the session, and the broker's limits.
struct Welcome {
  static constexpr Op op = Op::welcome;
  std::uint16_t version = version_newest;
  std::uint32_t frame_bytes_max = frame_bytes_least;  ///< the longest body that the broker accepts
  std::uint32_t heartbeat_ms = 0;  ///< the interval of heartbeats that the broker asks the client for; 0:
                                   ///< none
  std::uint32_t channels_max = 0;
  std::uint64_t broker = 0;   ///< a random number, new at each start of the broker
  std::uint64_t session = 0;  ///< for logs and stats

  static Result<Welcome> decode(ByteView body, std::uint8_t /*flags*/) {
    FieldParser fields(body);
    Welcome welcome;
    welcome.version = fields.number<std::uint16_t>();
    fields.zero<std::uint16_t>();
    welcome.frame_bytes_max =
        fields.number<std::uint32_t>("frame_bytes_max", frame_bytes_least, frame_bytes_greatest);
    welcome.heartbeat_ms = detail::read_heartbeat(fields);
    welcome.channels_max = fields.number<std::uint32_t>();
    welcome.broker = fields.number<std::uint64_t>();
    welcome.session = fields.number<std::uint64_t>();
    return fields.finish(welcome);
  }
  void encode(FieldWriter fields) const {
    fields.number(version).zero<std::uint16_t>().number(frame_bytes_max).number(heartbeat_ms);
    fields.number(channels_max).number(broker).number(session);
  }
  friend bool operator==(const Welcome&, const Welcome&) = default;
};

/// Presents one more ticket. Each join returns a ticket of its own.
struct Present {
  static constexpr Op op = Op::present;
  Secret ticket;

  static Result<Present> decode(ByteView body, std::uint8_t /*flags*/) {
    FieldParser fields(body);
    Present present;
    present.ticket = fields.text("the ticket", ticket_bytes_max);
    if (present.ticket.empty()) fields.fail("the ticket is missing");
    return fields.finish(std::move(present));
  }
  void encode(FieldWriter fields) const { fields.text(ticket.expose()); }
  friend bool operator==(const Present&, const Present&) = default;
};

/// A code and a sentence for people: why a request or channel failed, or why the session ends.
template <Op which>
struct Verdict {
  static constexpr Op op = which;
  Code code = Code::ok;
  std::string sentence;

  static Result<Verdict> decode(ByteView body, std::uint8_t /*flags*/) {
    FieldParser fields(body);
    Verdict verdict;
    verdict.code = static_cast<Code>(fields.number<std::uint16_t>());
    verdict.sentence = fields.text("the sentence", sentence_bytes_max);
    return fields.finish(std::move(verdict));
  }
  void encode(FieldWriter fields) const { fields.number(static_cast<std::uint16_t>(code)).text(sentence); }
  friend bool operator==(const Verdict&, const Verdict&) = default;
};
using ErrorAnswer = Verdict<Op::error>;
using Goodbye = Verdict<Op::goodbye>;

/// Answers a request that succeeded.
struct Done {
  static constexpr Op op = Op::done;
  std::uint64_t value = 0;  ///< after seek and read: the next offset

  static Result<Done> decode(ByteView body, std::uint8_t /*flags*/) {
    FieldParser fields(body);
    const Done done{fields.number<std::uint64_t>()};
    return fields.finish(done);
  }
  void encode(FieldWriter fields) const { fields.number(value); }
  friend bool operator==(const Done&, const Done&) = default;
};

/// Frames without a body.
template <Op which>
struct Bare {
  static constexpr Op op = which;
  static Result<Bare> decode(ByteView body, std::uint8_t /*flags*/) {
    return FieldParser(body).finish(Bare{});
  }
  void encode(FieldWriter /*fields*/) const {}
  friend bool operator==(const Bare&, const Bare&) = default;
};
using Close = Bare<Op::close>;
using Heartbeat = Bare<Op::heartbeat>;

/// Writes a whole frame without a batch, with the body `body`. Replaces the content of `frame`.
template <typename Body>
void encode_frame(std::vector<std::byte>& frame, const Body& body, std::uint32_t channel,
                  std::uint32_t request) {
  frame.resize(frame_layout::header_bytes);
  body.encode(FieldWriter(frame));
  FrameHeader header{Body::op, 0, channel, request,
                     static_cast<std::uint32_t>(frame.size() - frame_layout::header_bytes)};
  if constexpr (requires { body.flags(); }) header.flags = body.flags();
  encode_frame_header(frame.data(), header, ByteView(frame).subspan(frame_layout::header_bytes));
}
template <typename Body>
std::vector<std::byte> encode_frame(const Body& body, std::uint32_t channel, std::uint32_t request) {
  std::vector<std::byte> frame;
  encode_frame(frame, body, channel, request);
  return frame;
}

}  // namespace lightq::inline v1::session
