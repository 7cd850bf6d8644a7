/// ZMTP's CURVE handshake (RFC 25/ZMTP-CURVE, RFC 26/CURVEZMQ), both sides of it, over the data of its
/// commands; no I/O. Layer: endpoint.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "broker/endpoint/curve_box.hpp"
#include "broker/endpoint/curve_cipher.hpp"

namespace lightq::broker {

/// What a command of the handshake was.
enum class CurveOutcome {
  good,
  malformed,  ///< not what it should be, or not by whom it says
  other_key,  ///< for the owner of another key than this server's
};

/// What a WELCOME hands out, and the INITIATE has to show.
inline constexpr std::size_t curve_cookie_bytes = 96;

/// The server's side, which proves that it has the server's secret key, and learns the client's public key.
///
///     HELLO   ─► C', a box of zeros from C' to S
///     WELCOME ◄─ S' and the cookie, in a box from S to C'
///     INITIATE ─► the cookie; C, the vouch (C' and S, in a box from C to S'), metadata, in one from C' to S'
///     READY   ◄─ metadata, in a box from S' to C'
///
/// The RFC has the cookie carry the connection's keys, so that a server need remember nothing. Here a
/// connection takes far more memory than its keys, and there are few that have not said who they are: so the
/// keys are kept with it, and the cookie is random bytes that have to come back.
class CurveServer {
 public:
  /// `key` outlives it.
  explicit CurveServer(const CurveKeyPair& key) : key_(key) {}

  /// Takes HELLO, and appends WELCOME's frame to `output` if it is good.
  CurveOutcome take_hello(ByteView data, std::vector<std::byte>& output);
  /// Takes INITIATE. Only after a good HELLO.
  CurveOutcome take_initiate(ByteView data);
  /// The client's long-term key and its metadata, after a good INITIATE.
  [[nodiscard]] const CurvePublicKey& client_key() const { return client_key_; }
  [[nodiscard]] ByteView metadata() const { return metadata_; }
  /// Appends READY's frame, the end of the handshake.
  void append_ready(std::vector<std::byte>& output, ByteView metadata) const;
  /// What encrypts all behind READY; see CurveCipher.
  [[nodiscard]] std::unique_ptr<CurveCipher> make_cipher(std::uint64_t body_bytes_max) const;

 private:
  const CurveKeyPair& key_;
  const CurveKeyPair transient_;  // S'
  CurvePublicKey client_transient_{};
  CurvePublicKey client_key_{};
  std::array<std::byte, curve_cookie_bytes> cookie_{};
  std::uint64_t received_ = 0;
  std::optional<CurveBox> box_;  // between S' and C'
  std::vector<std::byte> metadata_;
};

/// The client's side.
class CurveClient {
 public:
  /// `key` outlives it.
  CurveClient(const CurveKeyPair& key, const CurvePublicKey& server_key);

  void append_hello(std::vector<std::byte>& output);
  /// False: it is not of the server with this key.
  bool take_welcome(ByteView data);
  /// Only after a good WELCOME. `claimed`: another's public key, to say that it is one's own.
  void append_initiate(std::vector<std::byte>& output, ByteView metadata,
                       const std::optional<CurvePublicKey>& claimed = {});
  /// The server's metadata; nothing: it is not of the server with this key.
  std::optional<std::vector<std::byte>> take_ready(ByteView data);
  [[nodiscard]] std::unique_ptr<CurveCipher> make_cipher(std::uint64_t body_bytes_max) const;

 private:
  const CurveKeyPair& key_;
  const CurvePublicKey server_key_;
  const CurveKeyPair transient_;  // C'
  CurvePublicKey server_transient_{};
  std::array<std::byte, curve_cookie_bytes> cookie_{};
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
  std::optional<CurveBox> box_;  // between C' and S'
};

}  // namespace lightq::broker
