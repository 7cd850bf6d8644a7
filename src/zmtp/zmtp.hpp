/// The broker's part of the ZeroMQ message transport protocol (ZMTP): the mechanism PLAIN (RFC 24/ZMTP-PLAIN)
/// and subscriptions. The client shares the part in lightq/protocol/zmtp.hpp. The mechanism CURVE is in
/// zmtp_curve.hpp. Pure functions over bytes. Layer: zmtp.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>

#include <lightq/base/types.hpp>
#include <lightq/protocol/zmtp.hpp>

namespace lightq::broker::zmtp {

using namespace lightq::zmtp;

/// The contents of PLAIN's HELLO.
struct PlainCredentials {
  std::string_view username;
  std::string_view password;
};
/// Returns the credentials in a HELLO's data, or nothing if the data are not exactly these two. Lifetime: the
/// texts point into `data`.
std::optional<PlainCredentials> credentials_of_hello(ByteView data);

/// Returns a PING's time to live, which is at the beginning of its data in tenths of a second. The sender
/// counts as dead if it sends nothing for that long. Zero means for ever. Requires: `data` has at least 2
/// bytes.
inline std::chrono::milliseconds ttl_of_ping(ByteView data) {
  const int tenths = std::to_integer<int>(data[0]) << 8 | std::to_integer<int>(data[1]);
  return std::chrono::milliseconds(tenths * 100);
}

/// A change of a peer's subscriptions.
struct SubscriptionChange {
  bool subscribe = false;  ///< false: the subscription is cancelled
  std::string_view prefix;
};
/// Returns the change in a ZMTP 3.0 message, which begins with the byte 1 (subscribe) or 0 (cancel). Returns
/// nothing for other messages. Lifetime: the prefix points into `payload`.
std::optional<SubscriptionChange> subscription_of_message(ByteView payload);
/// Returns the change in a ZMTP 3.1 command, SUBSCRIBE or CANCEL, or nothing for other commands. Lifetime:
/// the prefix points into the command.
std::optional<SubscriptionChange> subscription_of_command(const Command& command);

}  // namespace lightq::broker::zmtp
