/// ZeroMQ clients that attack a server: their handshakes with each security mechanism.
#pragma once

#include <optional>
#include <string_view>

#include <lightq/protocol/control.hpp>

#include "attacks/line.hpp"
#include "crypto/curve_box.hpp"

namespace lightq::test {

/// The client's view of a ZeroMQ handshake.
class ZmtpClient {
 public:
  /// Lifetime: `line` outlives this.
  explicit ZmtpClient(Line& line) : line_(line) {}

  /// Sends `says` and waits for the server's command `name`. Skips other commands before it. Returns its
  /// data, or nothing if the server answers ERROR or ends the connection.
  std::optional<Bytes> ask(ByteView says, std::string_view name);
  /// Returns the received bytes after the last command that `ask` returned.
  [[nodiscard]] const Bytes& left() const { return heard_; }

 private:
  Line& line_;
  Bytes heard_;
  bool greeted_ = false;
};

/// The result of a client's attempt to connect.
enum class Admission {
  refused,
  admitted,
  broken,  ///< the server admits the client, but its reply is not valid
};

/// Connects a socket of `type` with the mechanism NULL, which shows no ticket.
Admission connect_by_null(Line& line, std::string_view type);
/// Connects a socket of `type` with the mechanism PLAIN.
Admission connect_by_plain(Line& line, std::string_view type, std::string_view id, std::string_view secret);
/// Connects a socket of `type` with the mechanism CURVE. `claimed`: another client's public key, which the
/// client presents as its own.
Admission connect_by_curve(Line& line, std::string_view type, const broker::CurveKeyPair& key,
                           const CurvePublicKey& server_key,
                           const std::optional<CurvePublicKey>& claimed = {});

/// Returns the greeting of a client with this mechanism.
Bytes greeting_by_null();
Bytes greeting_by_curve();

}  // namespace lightq::test
