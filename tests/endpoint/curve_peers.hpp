/// A CURVE peer of a authorizer for tests. It sends any message that a test asks for, including invalid ones.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "access/connection_authorizer.hpp"
#include "support/curve_client.hpp"
#include "zmtp/zmtp_handshake.hpp"

namespace lightq::test {

using Bytes = std::vector<std::byte>;

inline Bytes bytes_of(std::string_view text) {
  const auto view = as_byte_view(text);
  return {view.begin(), view.end()};
}
inline Bytes message_frame(std::string_view body, bool more = false, bool command = false) {
  Bytes frame(broker::zmtp::frame_header_bytes_max);
  frame.resize(broker::zmtp::encode_frame_header(frame.data(), body.size(), more, command));
  const Bytes payload = bytes_of(body);
  frame.insert(frame.end(), payload.begin(), payload.end());
  return frame;
}

/// Returns the data of the command frame in `said`, or nothing if it is another command.
inline Bytes data_of(const Bytes& said, std::string_view name) {
  broker::zmtp::FrameHeader header;
  if (broker::zmtp::parse_frame_header(said, header) != broker::zmtp::FrameOutcome::complete) return {};
  const auto command = broker::zmtp::parse_command(ByteView(said).subspan(header.header_bytes));
  if (!command || command->name != name) return {};
  return {command->data.begin(), command->data.end()};
}
/// Returns the reason of an ERROR.
inline std::string error_of(const Bytes& said) {
  const Bytes data = data_of(said, "ERROR");
  return data.empty() ? std::string() : std::string(as_text(data).substr(1));
}

/// The authorizer's side of a handshake.
class GateSide {
 public:
  explicit GateSide(const broker::ConnectionAuthorizer& authorizer, std::string_view our_type = "PULL")
      : handshake(our_type, {"PUSH"}) {
    handshake.guard(&authorizer);
    handshake.begin(said_);
  }
  /// Receives `says` in pieces of `piece` bytes. Returns the bytes that it sends in reply.
  Bytes hear(const Bytes& says, std::size_t piece = SIZE_MAX) {
    for (std::size_t at = 0; at < says.size();) {
      const std::size_t step = std::min(piece, says.size() - at);
      come_.insert(come_.end(), says.begin() + static_cast<std::ptrdiff_t>(at),
                   says.begin() + static_cast<std::ptrdiff_t>(at + step));
      at += step;
      const std::size_t used = handshake.take(come_, said_);
      come_.erase(come_.begin(), come_.begin() + static_cast<std::ptrdiff_t>(used));
    }
    return std::exchange(said_, {});
  }
  [[nodiscard]] std::size_t left() const { return come_.size(); }

  broker::ZmtpHandshake handshake;

 private:
  Bytes come_;
  Bytes said_;
};

inline Bytes curve_greeting() {
  const auto greeting = broker::zmtp::greeting(broker::zmtp::Mechanism::curve);
  return {greeting.begin(), greeting.end()};
}

/// Both sides of a connection after the handshake.
struct CurvePair {
  CurvePair(broker::CurveServer& server, CurveClient& client, std::uint64_t body_bytes_max) {
    Bytes out;
    client.append_hello(out);
    Bytes welcome;
    EXPECT_EQ(server.take_hello(data_of(out, "HELLO"), welcome), broker::CurveOutcome::good);
    EXPECT_TRUE(client.take_welcome(data_of(welcome, "WELCOME")));
    out.clear();
    client.append_initiate(out, broker::zmtp::metadata_of("PUSH"));
    EXPECT_EQ(server.take_initiate(data_of(out, "INITIATE")), broker::CurveOutcome::good);
    Bytes ready;
    server.append_ready(ready, broker::zmtp::metadata_of("PULL"));
    EXPECT_TRUE(client.take_ready(data_of(ready, "READY")).has_value());
    of_server = server.make_cipher(body_bytes_max);
    of_client = client.make_cipher(body_bytes_max);
  }
  std::unique_ptr<broker::CurveCipher> of_server;
  std::unique_ptr<broker::CurveCipher> of_client;
};

}  // namespace lightq::test
