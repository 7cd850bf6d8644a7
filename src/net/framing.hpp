/// The interface through which the layer above a connection defines its bytes. Layer: net.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <lightq/base/types.hpp>

#include "net/handshake.hpp"
#include "net/shared_wire.hpp"
#include "net/wire_cipher.hpp"

namespace lightq::broker {

/// Defines how a connection opens and how its input is divided into frames. The connections of plain
/// producers (inlets), plain consumers (outlets), sessions and the control socket implement it. The
/// connection calls it once for each input, not for each frame. Thread: the connection's.
class Framing {
 public:
  Framing() = default;
  Framing(const Framing&) = delete;
  Framing& operator=(const Framing&) = delete;
  virtual ~Framing() = default;

  /// Returns the handshake of the two sides. Null: there is none, and the connection is open from its start.
  /// Called once. Lifetime: the handshake exists as long as the connection.
  virtual Handshake* begin_handshake() { return nullptr; }
  /// Makes the cipher that encrypts the connection from its first byte. Null: nothing is encrypted, unless
  /// the handshake brings a cipher.
  [[nodiscard]] virtual std::unique_ptr<WireCipher> make_cipher() const { return nullptr; }
  virtual void on_open() = 0;

  /// Takes whole frames off the front of `bytes` and returns their length. The remaining bytes are passed
  /// again, followed by more. Fails the connection on malformed input. May overwrite the bytes that it takes.
  /// Stops once the input's turn share is used up; it is called again for the remaining bytes.
  virtual std::size_t consume(std::span<std::byte> bytes) = 0;
  /// Called after each `consume`, to reply to the input as a whole.
  virtual void on_consumed() {}
  /// Called when `bytes` more bytes of the input's large frame were received. `frame` is the whole frame once
  /// it is complete, else empty.
  virtual void large_frame_received(std::span<std::byte> /*frame*/, std::size_t /*bytes*/) {}
  /// Moves about `bytes_max` bytes from shared memory to their destination, releases them there, and returns
  /// their number. 0: the first bytes must be received in the usual way. Requires: there are no leftover
  /// bytes.
  virtual std::size_t take_from(SharedWire&, std::size_t /*bytes_max*/) { return 0; }
  /// Called when the system takes output again.
  virtual void on_writable() {}

  /// Returns the bytes of messages that were received completely and find no space in the log.
  [[nodiscard]] virtual std::size_t held_bytes() const { return 0; }
  /// Returns the id of the user that the connection counts for; 0: no particular user.
  [[nodiscard]] virtual std::uint64_t held_by() const { return 0; }
  /// Returns true while the peer of an open connection is unauthenticated.
  [[nodiscard]] virtual bool is_unauthenticated() const { return false; }
  /// Returns how many more bytes an unauthenticated peer of an open connection must send, at least 1, until
  /// the leftover bytes `left` can be parsed.
  [[nodiscard]] virtual std::size_t missing(ByteView /*left*/) const { return 1; }
  /// Returns true if an open connection is of no use once its output cannot be sent. A connection that only
  /// receives returns false and is read to its end, because the peer's last bytes are still there.
  [[nodiscard]] virtual bool lives_by_output() const { return true; }
};

}  // namespace lightq::broker
