/// The server's side of ZMTP's CURVE handshake (RFC 25/ZMTP-CURVE, RFC 26/CURVEZMQ). Takes and makes the data
/// of the commands; does no I/O. Layer: zmtp.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "crypto/curve_box.hpp"
#include "crypto/curve_keys.hpp"
#include "zmtp/curve_cipher.hpp"

namespace lightq::broker {

/// The result of checking a command of the handshake.
enum class CurveOutcome {
  good,
  malformed,  ///< an invalid format or contents, or not made with the secret key of the named public key
  other_key,  ///< encrypted for another server's key
};

/// The size of the cookie, which WELCOME carries to the client and INITIATE carries back.
inline constexpr std::size_t curve_cookie_bytes = 96;

/// The server's side of a handshake. Shows the client that this side has the server's secret key, and learns
/// the client's public key. Long-term keys are S (server) and C (client); S' and C' are the transient keys of
/// the connection. Thread: the connection's.
///
///     HELLO   ─► C', a box of zeros from C' to S
///     WELCOME ◄─ S' and the cookie, in a box from S to C'
///     INITIATE ─► the cookie, and in a box from C' to S': C, the vouch, metadata
///                 (the vouch: C' and S, in a box from C to S')
///     READY   ◄─ metadata, in a box from S' to C'
///
/// In the RFC the cookie carries the connection's keys, so that the server keeps no state. Here the server
/// keeps the keys, and the cookie is random bytes that the client has to return. That is cheap: a connection
/// takes far more memory than its keys, and unauthenticated connections are few.
class CurveServer {
 public:
  /// Keeps the keys that the server has now: the client may know the present one or the former one.
  explicit CurveServer(const CurveKeys& keys) : keys_(keys.held()) {}

  /// Checks HELLO. Appends WELCOME's frame to `output` if HELLO is good.
  CurveOutcome take_hello(ByteView data, std::vector<std::byte>& output);
  /// Checks INITIATE. Requires: HELLO was good.
  CurveOutcome take_initiate(ByteView data);
  /// Returns the client's long-term key. Requires: INITIATE was good.
  [[nodiscard]] const CurvePublicKey& client_key() const { return client_key_; }
  /// Returns the client's metadata. Requires: INITIATE was good.
  [[nodiscard]] ByteView metadata() const { return metadata_; }
  /// Appends READY's frame, which ends the handshake. Requires: INITIATE was good.
  void append_ready(std::vector<std::byte>& output, ByteView metadata) const;
  /// Returns the cipher for all frames after READY. `body_bytes_max`: see CurveCipher.
  [[nodiscard]] std::unique_ptr<CurveCipher> make_cipher(std::uint64_t body_bytes_max) const;

 private:
  const CurveKeys::Held keys_;
  CurvePublicKey server_key_{};   // the one that the client knows, once HELLO was good
  const CurveKeyPair transient_;  // S'
  CurvePublicKey client_transient_{};
  CurvePublicKey client_key_{};
  std::array<std::byte, curve_cookie_bytes> cookie_{};
  std::uint64_t received_ = 0;
  std::optional<CurveBox> box_;  // between S' and C'
  std::vector<std::byte> metadata_;
};

}  // namespace lightq::broker
