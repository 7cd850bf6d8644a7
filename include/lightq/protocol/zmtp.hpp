/// ZMTP 3.1, the ZeroMQ message transport protocol (RFC 37/ZMTP), as broker and client speak it: greetings,
/// frames and commands. Peers of version 3.0 (RFC 23/ZMTP) understand it. Pure functions over bytes. Layer:
/// protocol.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <lightq/base/types.hpp>

namespace lightq::inline v1 {

namespace zmtp {

/// The size of a greeting: signature, version, mechanism, as-server, filler (RFC 37, "Greeting").
inline constexpr std::size_t greeting_bytes = 64;
/// The size of its first part, signature and version, which are the same for every mechanism.
inline constexpr std::size_t greeting_head_bytes = 12;
/// The sizes of a short and a long frame header.
inline constexpr std::size_t short_header_bytes = 2;
inline constexpr std::size_t long_header_bytes = 9;
inline constexpr std::uint64_t short_body_bytes_max = 255;
/// The longest command (READY, SUBSCRIBE, PING …); a longer one ends the connection.
inline constexpr std::size_t command_bytes_max = 4096;

/// The longest context of a PING, which the PONG repeats: RFC 37, "Heartbeating".
inline constexpr std::size_t ping_context_bytes_max = 16;
/// The size of the TTL in front of the context: how long the peer may be silent before it counts as dead.
inline constexpr std::size_t ping_ttl_bytes = 2;

enum class Mechanism {
  null,
  plain,  ///< the client sends a user name and a password
  curve,  ///< the client knows the server's public key and sends its own; all later frames are encrypted
};

enum class GreetingOutcome {
  valid,
  incomplete,   ///< valid so far
  not_zmtp,     ///< not a ZeroMQ peer
  old_version,  ///< ZMTP 1 or 2 (libzmq before 4.0)
};

struct FrameHeader {
  std::size_t header_bytes = 0;
  std::uint64_t body_bytes = 0;
  bool more = false;     ///< another part of the same message follows
  bool command = false;  ///< a command, not a message
};
enum class FrameOutcome { complete, incomplete, invalid };

struct Command {
  std::string_view name;
  ByteView data;
};

}  // namespace zmtp

namespace zmtp_detail {

using zmtp::Mechanism;

inline constexpr std::size_t signature_bytes = 10;
inline constexpr std::size_t version_at = 10;
inline constexpr std::size_t mechanism_at = 12;
inline constexpr std::size_t mechanism_bytes = 20;
inline constexpr std::size_t as_server_at = 32;
inline constexpr std::byte flag_more{0x01};
inline constexpr std::byte flag_long{0x02};
inline constexpr std::byte flag_command{0x04};
inline constexpr std::byte flags_known = flag_more | flag_long | flag_command;

constexpr std::string_view name_of(Mechanism mechanism) {
  switch (mechanism) {
    case Mechanism::null: break;
    case Mechanism::plain: return "PLAIN";
    case Mechanism::curve: return "CURVE";
  }
  return "NULL";
}

inline std::uint64_t load_big_endian(const std::byte* from, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | std::to_integer<std::uint64_t>(from[i]);
  return value;
}

inline void store_big_endian(std::byte* to, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = bytes; i-- > 0; value >>= 8) to[i] = static_cast<std::byte>(value & 0xFF);
}

inline void append(std::vector<std::byte>& to, ByteView bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

/// Takes `count` bytes off the front; returns nothing if there are fewer.
inline std::optional<ByteView> take(ByteView& from, std::size_t count) {
  if (from.size() < count) return std::nullopt;
  const ByteView front = from.first(count);
  from = from.subspan(count);
  return front;
}

}  // namespace zmtp_detail

namespace zmtp {

// --- Greetings.

/// Returns the greeting that a side sends first. `is_server`: this side authenticates the other one (PLAIN,
/// CURVE).
inline std::array<std::byte, greeting_bytes> greeting(Mechanism mechanism = Mechanism::null,
                                                      bool is_server = false) {
  std::array<std::byte, greeting_bytes> bytes{};
  bytes[0] = std::byte{0xFF};
  bytes[zmtp_detail::signature_bytes - 1] = std::byte{0x7F};
  bytes[zmtp_detail::version_at] = std::byte{3};
  bytes[zmtp_detail::version_at + 1] = std::byte{1};
  const ByteView name = as_byte_view(zmtp_detail::name_of(mechanism));
  std::copy(name.begin(), name.end(), bytes.begin() + zmtp_detail::mechanism_at);
  bytes[zmtp_detail::as_server_at] = std::byte{is_server};
  return bytes;
}

/// Checks the first bytes of a peer, and reports a wrong byte as soon as it is there.
inline GreetingOutcome check_greeting(ByteView bytes) {
  if (!bytes.empty() && bytes[0] != std::byte{0xFF}) return GreetingOutcome::not_zmtp;
  if (bytes.size() < zmtp_detail::signature_bytes) return GreetingOutcome::incomplete;
  if ((bytes[zmtp_detail::signature_bytes - 1] & std::byte{1}) == std::byte{0})
    return GreetingOutcome::not_zmtp;
  if (bytes.size() <= zmtp_detail::version_at) return GreetingOutcome::incomplete;
  if (std::to_integer<int>(bytes[zmtp_detail::version_at]) < 3) return GreetingOutcome::old_version;
  return bytes.size() < greeting_bytes ? GreetingOutcome::incomplete : GreetingOutcome::valid;
}

/// Returns how many more bytes of an incomplete greeting must arrive before the next check; at least 1.
inline std::size_t missing_of_greeting(ByteView bytes) {
  const std::size_t told_by =
      bytes.size() <= zmtp_detail::version_at ? zmtp_detail::version_at + 1 : greeting_bytes;
  return std::max<std::size_t>(told_by, bytes.size() + 1) - bytes.size();
}

/// Returns the mechanism of a valid greeting; nothing if it is not supported here.
inline std::optional<Mechanism> mechanism_of(ByteView greeting) {
  std::string_view said = as_text(greeting.subspan(zmtp_detail::mechanism_at, zmtp_detail::mechanism_bytes));
  const std::size_t end = said.find_last_not_of('\0');
  said = said.substr(0, end == std::string_view::npos ? 0 : end + 1);
  for (const Mechanism mechanism : {Mechanism::null, Mechanism::plain, Mechanism::curve}) {
    if (said == zmtp_detail::name_of(mechanism)) return mechanism;
  }
  return std::nullopt;
}

/// Returns true if the sender of a valid greeting claims to be the server of its mechanism.
inline bool is_server(ByteView greeting) {
  return greeting[zmtp_detail::as_server_at] != std::byte{0};
}

/// Returns true if a valid greeting is of version 3.1 or later, so that the peer knows PING and PONG.
inline bool speaks_3_1(ByteView greeting) {
  const int major = std::to_integer<int>(greeting[zmtp_detail::version_at]);
  return major > 3 || std::to_integer<int>(greeting[zmtp_detail::version_at + 1]) >= 1;
}

// --- Frames.

/// Parses a frame's header. `complete` means that the header is complete, not the body.
inline FrameOutcome parse_frame_header(ByteView bytes, FrameHeader& header) {
  if (bytes.empty()) return FrameOutcome::incomplete;
  const std::byte flags = bytes[0];
  if ((flags & ~zmtp_detail::flags_known) != std::byte{0}) return FrameOutcome::invalid;
  header.more = (flags & zmtp_detail::flag_more) != std::byte{0};
  header.command = (flags & zmtp_detail::flag_command) != std::byte{0};
  if (header.more && header.command) return FrameOutcome::invalid;
  const bool is_long = (flags & zmtp_detail::flag_long) != std::byte{0};
  header.header_bytes = is_long ? long_header_bytes : short_header_bytes;
  if (bytes.size() < header.header_bytes) return FrameOutcome::incomplete;
  header.body_bytes = zmtp_detail::load_big_endian(bytes.data() + 1, header.header_bytes - 1);
  if (header.body_bytes >> 63 != 0) return FrameOutcome::invalid;
  return FrameOutcome::complete;
}

/// The largest header written by encode_frame_header.
inline constexpr std::size_t frame_header_bytes_max = long_header_bytes;
/// Writes a frame's header to `to` and returns its length.
inline std::size_t encode_frame_header(std::byte* to, std::uint64_t body_bytes, bool more,
                                       bool command = false) {
  const std::byte flags =
      (more ? zmtp_detail::flag_more : std::byte{0}) | (command ? zmtp_detail::flag_command : std::byte{0});
  if (body_bytes <= short_body_bytes_max) {
    to[0] = flags;
    to[1] = static_cast<std::byte>(body_bytes);
    return short_header_bytes;
  }
  to[0] = flags | zmtp_detail::flag_long;
  zmtp_detail::store_big_endian(to + 1, body_bytes, long_header_bytes - 1);
  return long_header_bytes;
}
/// Returns the length of the header for a body of this size.
constexpr std::size_t frame_header_bytes(std::uint64_t body_bytes) {
  return body_bytes <= short_body_bytes_max ? short_header_bytes : long_header_bytes;
}

// --- Commands.

/// Splits a command frame's body into its name and data; returns nothing if the body is malformed.
inline std::optional<Command> parse_command(ByteView body) {
  const auto length = zmtp_detail::take(body, 1);
  if (!length) return std::nullopt;
  const auto name = zmtp_detail::take(body, std::to_integer<std::size_t>((*length)[0]));
  if (!name || name->empty()) return std::nullopt;
  return Command{as_text(*name), body};
}

/// Returns the `Socket-Type` property in the data of READY or INITIATE; nothing if it is missing or the
/// properties are malformed.
inline std::optional<std::string_view> socket_type_of_ready(ByteView data) {
  std::optional<std::string_view> type;
  while (!data.empty()) {
    const auto name_length = zmtp_detail::take(data, 1);
    const auto name = zmtp_detail::take(data, std::to_integer<std::size_t>((*name_length)[0]));
    if (!name) return std::nullopt;
    const auto value_length = zmtp_detail::take(data, 4);
    if (!value_length) return std::nullopt;
    const auto value = zmtp_detail::take(
        data, static_cast<std::size_t>(zmtp_detail::load_big_endian(value_length->data(), 4)));
    if (!value) return std::nullopt;
    const auto equal_but_case = [](char a, char b) { return (a | 0x20) == (b | 0x20); };
    constexpr std::string_view wanted = "Socket-Type";
    const std::string_view text = as_text(*name);
    if (std::equal(text.begin(), text.end(), wanted.begin(), wanted.end(), equal_but_case))
      type = as_text(*value);
  }
  return type;
}

/// Returns the reason in the data of an ERROR command; empty if it cannot be read.
inline std::string_view reason_of_error(ByteView data) {
  const auto length = zmtp_detail::take(data, 1);
  const auto reason =
      length ? zmtp_detail::take(data, std::to_integer<std::size_t>((*length)[0])) : std::nullopt;
  return reason ? as_text(*reason) : std::string_view();
}

/// Returns the properties that this side sends: its `Socket-Type`.
inline std::vector<std::byte> metadata_of(std::string_view socket_type) {
  std::vector<std::byte> data;
  constexpr std::string_view property = "Socket-Type";
  data.reserve(1 + property.size() + 4 + socket_type.size());
  data.push_back(static_cast<std::byte>(property.size()));
  zmtp_detail::append(data, as_byte_view(property));
  std::array<std::byte, 4> length{};
  zmtp_detail::store_big_endian(length.data(), socket_type.size(), length.size());
  zmtp_detail::append(data, length);
  zmtp_detail::append(data, as_byte_view(socket_type));
  return data;
}

/// Appends a whole command frame.
inline void append_command(std::vector<std::byte>& to, std::string_view name, ByteView data) {
  const std::size_t body_bytes = 1 + name.size() + data.size();
  std::array<std::byte, frame_header_bytes_max> header{};
  zmtp_detail::append(to,
                      ByteView(header).first(encode_frame_header(header.data(), body_bytes, false, true)));
  to.push_back(static_cast<std::byte>(name.size()));
  zmtp_detail::append(to, as_byte_view(name));
  zmtp_detail::append(to, data);
}
inline void append_ready(std::vector<std::byte>& to, std::string_view socket_type) {
  append_command(to, "READY", metadata_of(socket_type));
}
/// Appends an ERROR command. `reason` is cut at 255 bytes.
inline void append_error(std::vector<std::byte>& to, std::string_view reason) {
  reason = reason.substr(0, short_body_bytes_max);
  std::vector<std::byte> data;
  data.push_back(static_cast<std::byte>(reason.size()));
  zmtp_detail::append(data, as_byte_view(reason));
  append_command(to, "ERROR", data);
}

}  // namespace zmtp

}  // namespace lightq::inline v1
