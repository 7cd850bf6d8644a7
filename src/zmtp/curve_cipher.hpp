/// Encryption after a CURVE handshake: each ZMTP frame in a MESSAGE command (RFC 25/ZMTP-CURVE, RFC
/// 26/CURVEZMQ). Layer: zmtp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "crypto/curve_box.hpp"
#include "net/wire_cipher.hpp"

namespace lightq::broker {

/// The cipher of one connection. A MESSAGE carries its number, which only grows. Its box contains the frame's
/// flags and body:
///
///     7 "MESSAGE" | number (8, big-endian) | tag (16) | flags (1) | body
class CurveCipher final : public WireCipher {
 public:
  enum class Side { server, client };
  /// `box`: made from the keys that both sides use for this connection. `sent`, `received`: the numbers of
  /// the handshake's last commands. `body_bytes_max`: a longer frame ends the connection.
  CurveCipher(const CurveBox& box, Side side, std::uint64_t sent, std::uint64_t received,
              std::uint64_t body_bytes_max)
      : box_(box), side_(side), sent_(sent), received_(received), body_bytes_max_(body_bytes_max) {}

  std::size_t open(std::span<std::byte> wire, std::vector<std::byte>& plain,
                   std::vector<std::byte>& answer) override;
  void allow_units_of(std::uint64_t bytes) override { body_bytes_max_ = bytes; }
  [[nodiscard]] bool ready() const override { return true; }
  std::size_t seal(ByteView plain, std::vector<std::byte>& wire) override;
  [[nodiscard]] const std::string& failure() const override { return failure_; }

 private:
  std::size_t begin(ByteView wire);
  void open_message(std::span<std::byte> body, std::vector<std::byte>& plain);
  std::size_t gather(std::span<std::byte> wire, std::vector<std::byte>& plain);
  std::size_t fail(std::string_view why);

  const CurveBox box_;
  const Side side_;
  std::uint64_t sent_;
  std::uint64_t received_;
  std::uint64_t body_bytes_max_;
  std::size_t gathering_ = 0;        // the length of the body that is being gathered; 0: none
  std::vector<std::byte> gathered_;  // its bytes so far
  std::string failure_;
};

}  // namespace lightq::broker
