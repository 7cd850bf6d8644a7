/// The ZeroMQ message transport protocol as this broker speaks it: what it shares with the client
/// (lightq/protocol/zmtp.hpp), and what only a broker meets: the mechanisms PLAIN (RFC 24/ZMTP-PLAIN) and
/// CURVE (zmtp_curve.hpp), and subscriptions. Pure functions over bytes. Layer: endpoint.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include <lightq/base/types.hpp>
#include <lightq/protocol/zmtp.hpp>

namespace lightq::broker::zmtp {

using namespace lightq::zmtp;

/// What PLAIN's HELLO says.
struct PlainCredentials {
  std::string_view username;
  std::string_view password;
};
/// Nothing if the data are not exactly these two.
std::optional<PlainCredentials> credentials_of_hello(ByteView data);

/// Appends whole command frames.
void append_initiate(std::vector<std::byte>& to, std::string_view socket_type);
/// At most 255 bytes of each are said.
void append_hello(std::vector<std::byte>& to, std::string_view username, std::string_view password);

/// How long the peer that sent a PING means to live without a word: its data begin with that, in tenths of a
/// second. Zero: for ever.
inline std::chrono::milliseconds ttl_of_ping(ByteView data) {
  const int tenths = std::to_integer<int>(data[0]) << 8 | std::to_integer<int>(data[1]);
  return std::chrono::milliseconds(tenths * 100);
}

/// A change of a peer's subscriptions, in either of its forms: a message whose first byte is 1 or 0 (3.0), or
/// a SUBSCRIBE or CANCEL command (3.1).
struct SubscriptionChange {
  bool subscribe = false;
  std::string_view prefix;
};
std::optional<SubscriptionChange> subscription_of_message(ByteView payload);
std::optional<SubscriptionChange> subscription_of_command(const Command& command);

}  // namespace lightq::broker::zmtp
