/// The interface of the handshake with which a connection begins. Layer: net.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <lightq/base/types.hpp>

#include "net/wire_cipher.hpp"

namespace lightq::broker {

/// The handshake of one connection, over bytes. The layer above implements it and hands it to the connection,
/// which calls it until it is complete or the peer is refused. Does no I/O. Thread: the connection's.
class Handshake {
 public:
  enum class Outcome {
    under_way,
    complete,
    refused,   ///< the output ends with the reply to the peer
    nonsense,  ///< refused, because no peer of any version sends such bytes
    no_room,   ///< refused because of a limit; nothing more is sent
  };

  Handshake() = default;
  Handshake(const Handshake&) = delete;
  Handshake& operator=(const Handshake&) = delete;
  virtual ~Handshake() = default;

  /// Appends the first bytes of this side to `output`.
  virtual void begin(std::vector<std::byte>& output) = 0;
  /// Takes the bytes of complete steps from the front of `bytes` and appends the replies to `output`. Returns
  /// how many bytes were taken. The caller passes the rest again, followed by newer bytes.
  virtual std::size_t take(ByteView bytes, std::vector<std::byte>& output) = 0;
  [[nodiscard]] virtual Outcome outcome() const = 0;
  /// Returns the reason why the peer was refused; empty if it was not.
  [[nodiscard]] virtual const std::string& failure() const = 0;
  /// Returns how many more bytes must follow `left`, the rest of `take`, before `take` can continue; at least
  /// 1.
  [[nodiscard]] virtual std::size_t missing(ByteView left) const = 0;
  /// Returns the cipher for all bytes after a complete handshake. Null: they are not encrypted.
  [[nodiscard]] virtual std::unique_ptr<WireCipher> take_cipher() = 0;
};

}  // namespace lightq::broker
