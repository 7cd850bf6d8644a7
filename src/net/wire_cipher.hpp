/// The interface of a connection's encryption: between its plain bytes and those on the wire. Layer:
/// net.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <lightq/base/types.hpp>

namespace lightq::broker {

/// Encrypts and decrypts the bytes of one connection, in both directions. Does no I/O. Thread: the
/// connection's.
class WireCipher {
 public:
  WireCipher() = default;
  WireCipher(const WireCipher&) = delete;
  WireCipher& operator=(const WireCipher&) = delete;
  virtual ~WireCipher() = default;

  /// Decrypts bytes from the front of `wire` and appends the plain bytes to `plain`. May overwrite `wire`.
  /// Returns how many bytes of `wire` were taken. The caller passes the rest again, followed by newer bytes,
  /// so an implementation bounds the rest by a failure. Appends its own messages to the peer, such as those
  /// of a handshake or an alert, to `answer`. The caller sends `answer` unchanged after the bytes that were
  /// encrypted before.
  virtual std::size_t open(std::span<std::byte> wire, std::vector<std::byte>& plain,
                           std::vector<std::byte>& answer) = 0;
  /// Sets the longest unit of input from now on, for ciphers that keep a unit until it is complete.
  virtual void allow_units_of(std::uint64_t /*bytes*/) {}
  /// Returns true if bytes can be encrypted: the cipher's own handshake, if it has one, is complete.
  [[nodiscard]] virtual bool ready() const = 0;
  /// Encrypts one unit (a ZMTP frame, a TLS record) from the front of `plain` and appends it to `wire`.
  /// Returns how many bytes of `plain` were encrypted; 0: `plain` has no whole unit. Requires: ready().
  virtual std::size_t seal(ByteView plain, std::vector<std::byte>& wire) = 0;
  /// Returns true if plain bytes that are cut anywhere make a unit. Such bytes are encrypted without being
  /// copied first.
  [[nodiscard]] virtual bool seals_any_bytes() const { return false; }
  /// Returns the reason why the connection has to end; empty if it may continue.
  [[nodiscard]] virtual const std::string& failure() const = 0;
};

}  // namespace lightq::broker
