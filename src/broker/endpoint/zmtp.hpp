/// The ZeroMQ message transport protocol as this broker speaks it: ZMTP 3.1 (RFC 37/ZMTP), which 3.0 peers
/// (RFC 23/ZMTP) understand, with the mechanisms NULL, PLAIN (RFC 24/ZMTP-PLAIN) and CURVE (zmtp_curve.hpp).
/// Pure functions over bytes. Layer: endpoint.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <lightq/base/types.hpp>

namespace lightq::broker::zmtp {

/// Signature, version, mechanism, as-server, filler: RFC 37, "Greeting".
inline constexpr std::size_t greeting_bytes = 64;
/// Of these: signature and version, which are the same whatever the mechanism.
inline constexpr std::size_t greeting_head_bytes = 12;
/// A short frame header; a long one.
inline constexpr std::size_t short_header_bytes = 2;
inline constexpr std::size_t long_header_bytes = 9;
inline constexpr std::uint64_t short_body_bytes_max = 255;
/// Commands (READY, SUBSCRIBE, PING …) longer than this end the connection.
inline constexpr std::size_t command_bytes_max = 4096;

/// Of a PING's context, which the PONG repeats: RFC 37, "Heartbeating".
inline constexpr std::size_t ping_context_bytes_max = 16;

enum class Mechanism {
  null,
  plain,  ///< the client says a user name and a password
  curve,  ///< the client knows the server's public key, and shows its own; all that follows is encrypted
};
/// What a side sends first. `is_server`: of PLAIN and CURVE, the side that is asked for entry.
std::array<std::byte, greeting_bytes> greeting(Mechanism mechanism = Mechanism::null, bool is_server = false);

enum class GreetingOutcome {
  valid,
  incomplete,   ///< a good beginning
  not_zmtp,     ///< not a ZeroMQ peer
  old_version,  ///< ZMTP 1 or 2 (libzmq before 4.0)
};
/// Judges the first bytes of a peer, as early as a byte is wrong.
GreetingOutcome check_greeting(ByteView bytes);
/// How many more bytes it takes to tell more of a greeting that is incomplete; at least 1.
std::size_t missing_of_greeting(ByteView bytes);

/// Of a valid greeting; nothing: one that is not spoken here.
std::optional<Mechanism> mechanism_of(ByteView greeting);
/// Whether the sender of a valid greeting takes itself for the server of its mechanism.
bool is_server(ByteView greeting);
/// Whether a valid greeting is of version 3.1 or later: its peer knows PING and PONG.
bool speaks_3_1(ByteView greeting);

struct FrameHeader {
  std::size_t header_bytes = 0;
  std::uint64_t body_bytes = 0;
  bool more = false;     ///< another part of the same message follows
  bool command = false;  ///< not a message
};
enum class FrameOutcome { complete, incomplete, invalid };
/// Reads a frame's header; `complete` says that the header is, not the body.
FrameOutcome parse_frame_header(ByteView bytes, FrameHeader& header);

/// The largest header written by encode_frame_header.
inline constexpr std::size_t frame_header_bytes_max = long_header_bytes;
/// Writes a frame's header to `to`; answers its length.
std::size_t encode_frame_header(std::byte* to, std::uint64_t body_bytes, bool more, bool command = false);
/// The length of the header written for such a body.
constexpr std::size_t frame_header_bytes(std::uint64_t body_bytes) {
  return body_bytes <= short_body_bytes_max ? short_header_bytes : long_header_bytes;
}

struct Command {
  std::string_view name;
  ByteView data;
};
/// A command frame's body taken apart.
std::optional<Command> parse_command(ByteView body);
/// What PLAIN's HELLO says.
struct PlainCredentials {
  std::string_view username;
  std::string_view password;
};
/// Nothing if the data are not exactly these two.
std::optional<PlainCredentials> credentials_of_hello(ByteView data);
/// The `Socket-Type` property of READY's or INITIATE's data; nothing if it is missing or the properties are
/// malformed.
std::optional<std::string_view> socket_type_of_ready(ByteView data);

/// The properties that this side tells: its `Socket-Type`.
std::vector<std::byte> metadata_of(std::string_view socket_type);

/// Appends whole command frames.
void append_command(std::vector<std::byte>& to, std::string_view name, ByteView data);
void append_ready(std::vector<std::byte>& to, std::string_view socket_type);
void append_initiate(std::vector<std::byte>& to, std::string_view socket_type);
/// At most 255 bytes of each are said.
void append_hello(std::vector<std::byte>& to, std::string_view username, std::string_view password);
/// `reason` is cut at 255 bytes.
void append_error(std::vector<std::byte>& to, std::string_view reason);

/// A change of a peer's subscriptions, in either of its forms: a message whose first byte is 1 or 0 (3.0), or
/// a SUBSCRIBE or CANCEL command (3.1).
struct SubscriptionChange {
  bool subscribe = false;
  std::string_view prefix;
};
std::optional<SubscriptionChange> subscription_of_message(ByteView payload);
std::optional<SubscriptionChange> subscription_of_command(const Command& command);

}  // namespace lightq::broker::zmtp
