/// What stands between a connection's bytes and those on the wire, where it is encrypted. Layer: endpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <lightq/base/types.hpp>

namespace lightq::broker {

/// One connection's encryption, both ways; no I/O. The connection's thread.
class WireCipher {
 public:
  WireCipher() = default;
  WireCipher(const WireCipher&) = delete;
  WireCipher& operator=(const WireCipher&) = delete;
  virtual ~WireCipher() = default;

  /// Takes what it can off the front of `wire`, which it may write over, and answers how many bytes they
  /// were; what is left comes again, with more behind it, and has to be bounded by calling it a failure.
  /// Appends what they say to `plain`, and what this side has to say to it by itself (a handshake's message,
  /// an alert) to `answer`, which leaves as it is, behind what was sealed before.
  virtual std::size_t open(std::span<std::byte> wire, std::vector<std::byte>& plain,
                           std::vector<std::byte>& answer) = 0;
  /// Units may be so long from now on, where they have to be kept until they have come whole.
  virtual void allow_units_of(std::uint64_t /*bytes*/) {}
  /// Whether memory of a library's that input was decrypted in is to be wiped, at some cost.
  virtual void wipe_plain(bool /*wipes*/) {}
  /// Whether bytes can be sealed: the handshake, if it has one of its own, is over.
  [[nodiscard]] virtual bool ready() const = 0;
  /// Seals one unit (a ZMTP frame, a TLS record) off the front of `plain`, appends it to `wire`, and answers
  /// how many bytes of `plain` that were; 0: no whole unit is there. Only when it is ready.
  virtual std::size_t seal(ByteView plain, std::vector<std::byte>& wire) = 0;
  /// Whether any plain bytes make a unit, wherever they are cut: then they are sealed from where they lie.
  [[nodiscard]] virtual bool seals_any_bytes() const { return false; }
  /// Why the connection has to end; empty: it has not.
  [[nodiscard]] virtual const std::string& failure() const = 0;
};

}  // namespace lightq::broker
