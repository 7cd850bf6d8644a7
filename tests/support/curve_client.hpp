/// The client's side of ZMTP's CURVE handshake, for tests of the broker's side. It also sends what no correct
/// client sends.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "crypto/curve_box.hpp"
#include "zmtp/curve_cipher.hpp"
#include "zmtp/zmtp.hpp"
#include "zmtp/zmtp_curve.hpp"

namespace lightq::test {

/// One handshake. RFC 26/CURVEZMQ defines the layouts of the commands; CurveServer shows their order.
class CurveClient {
 public:
  /// Lifetime: `key` outlives this.
  CurveClient(const broker::CurveKeyPair& key, const CurvePublicKey& server_key)
      : key_(key), server_key_(server_key) {}

  /// Appends HELLO's frame.
  void append_hello(std::vector<std::byte>& output) {
    const auto said = bytes_of(++sent_);
    std::vector<std::byte> hello(hello_key_at);
    hello[0] = std::byte{1};  // the major version
    append(hello, transient_.public_key());
    append(hello, said);
    // For an impossible server key the box stays zeros, which no server can open.
    const auto box = broker::CurveBox::between(transient_, server_key_);
    const std::vector<std::byte> zeros(hello_zeros_bytes);
    if (box) append_sealed(hello, *box, nonce_of("CurveZMQHELLO---", said), zeros);
    hello.resize(hello_key_at + curve_key_bytes + said.size() + broker::curve_tag_bytes + hello_zeros_bytes);
    broker::zmtp::append_command(output, "HELLO", hello);
  }
  /// Takes WELCOME. Returns false if it is not from the server with `server_key`.
  bool take_welcome(ByteView data) {
    const auto with_server = broker::CurveBox::between(transient_, server_key_);
    const std::size_t plain_bytes = curve_key_bytes + broker::curve_cookie_bytes;
    if (data.size() != long_nonce_bytes + broker::curve_tag_bytes + plain_bytes || !with_server) return false;
    const auto plain = opened(*with_server, nonce_of("WELCOME-", data.first(long_nonce_bytes)),
                              data.subspan(long_nonce_bytes));
    if (!plain) return false;
    std::copy_n(plain->begin(), curve_key_bytes, server_transient_.begin());
    std::copy_n(plain->begin() + curve_key_bytes, cookie_.size(), cookie_.begin());
    box_ = broker::CurveBox::between(transient_, server_transient_);
    return box_.has_value();
  }
  /// Appends INITIATE's frame. Requires: WELCOME was good. `claimed`: another client's public key, which the
  /// client presents as its own.
  void append_initiate(std::vector<std::byte>& output, ByteView metadata,
                       const std::optional<CurvePublicKey>& claimed = {}) {
    std::array<std::byte, long_nonce_bytes> vouch_said{};
    broker::fill_random(vouch_said);
    std::vector<std::byte> vouch;
    append(vouch, transient_.public_key());
    append(vouch, server_key_);
    std::vector<std::byte> plain;
    append(plain, claimed.value_or(key_.public_key()));
    append(plain, vouch_said);
    const auto to_server = broker::CurveBox::between(key_, server_transient_);
    if (to_server) append_sealed(plain, *to_server, nonce_of("VOUCH---", vouch_said), vouch);
    plain.resize(curve_key_bytes + long_nonce_bytes + broker::curve_tag_bytes + 2 * curve_key_bytes);
    append(plain, metadata);
    const auto said = bytes_of(++sent_);
    std::vector<std::byte> initiate(cookie_.begin(), cookie_.end());
    append(initiate, said);
    append_sealed(initiate, *box_, nonce_of("CurveZMQINITIATE", said), plain);
    broker::zmtp::append_command(output, "INITIATE", initiate);
  }
  /// Returns the server's metadata in READY, or nothing if READY is not from the server with `server_key`.
  std::optional<std::vector<std::byte>> take_ready(ByteView data) {
    if (data.size() < number_bytes + broker::curve_tag_bytes) return std::nullopt;
    received_ = 0;
    for (const std::byte byte : data.first(number_bytes))
      received_ = received_ << 8U | std::to_integer<std::uint64_t>(byte);
    return opened(*box_, nonce_of("CurveZMQREADY---", data.first(number_bytes)), data.subspan(number_bytes));
  }
  /// Returns the cipher for all frames after READY. `body_bytes_max`: see CurveCipher.
  [[nodiscard]] std::unique_ptr<broker::CurveCipher> make_cipher(std::uint64_t body_bytes_max) const {
    return std::make_unique<broker::CurveCipher>(*box_, broker::CurveCipher::Side::client, sent_, received_,
                                                 body_bytes_max);
  }

 private:
  static constexpr std::size_t number_bytes = 8;
  static constexpr std::size_t long_nonce_bytes = 16;
  static constexpr std::size_t hello_key_at = 74;
  static constexpr std::size_t hello_zeros_bytes = 64;

  static std::array<std::byte, number_bytes> bytes_of(std::uint64_t number) {
    std::array<std::byte, number_bytes> bytes{};
    for (std::size_t i = bytes.size(); i-- > 0; number >>= 8U)
      bytes.at(i) = static_cast<std::byte>(number & 0xFFU);
    return bytes;
  }
  /// Returns a nonce: the fixed prefix and then the part that the command carries.
  static broker::CurveNonce nonce_of(std::string_view prefix, ByteView said) {
    broker::CurveNonce nonce{};
    std::memcpy(nonce.data(), prefix.data(), prefix.size());
    std::copy_n(said.begin(), nonce.size() - prefix.size(),
                nonce.begin() + static_cast<std::ptrdiff_t>(prefix.size()));
    return nonce;
  }
  static void append(std::vector<std::byte>& to, ByteView bytes) {
    to.insert(to.end(), bytes.begin(), bytes.end());
  }
  static void append_sealed(std::vector<std::byte>& to, const broker::CurveBox& box,
                            const broker::CurveNonce& nonce, ByteView plain) {
    const std::size_t at = to.size();
    to.resize(at + broker::curve_tag_bytes + plain.size());
    box.seal(nonce, plain, to.data() + at);
  }
  /// Returns the contents of the box, or nothing if it does not open.
  static std::optional<std::vector<std::byte>> opened(const broker::CurveBox& box,
                                                      const broker::CurveNonce& nonce, ByteView sealed) {
    std::vector<std::byte> plain(sealed.size() - broker::curve_tag_bytes);
    if (!box.open(nonce, sealed, plain.data())) return std::nullopt;
    return plain;
  }

  const broker::CurveKeyPair& key_;
  const CurvePublicKey server_key_;
  const broker::CurveKeyPair transient_;  // C'
  CurvePublicKey server_transient_{};
  std::array<std::byte, broker::curve_cookie_bytes> cookie_{};
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
  std::optional<broker::CurveBox> box_;  // between C' and S'
};

}  // namespace lightq::test
