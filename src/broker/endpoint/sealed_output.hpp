/// Encrypted bytes on their way to a peer, and which plain ones they are. Layer: endpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include <lightq/base/types.hpp>

#include "broker/endpoint/wire_cipher.hpp"

namespace lightq::broker {

/// Sealed a little ahead of what the operating system takes. One thread.
class SealedOutput {
 public:
  /// `cipher` outlives it.
  explicit SealedOutput(WireCipher& cipher) : cipher_(cipher) {}

  /// Bytes that leave as they are, behind all that is here.
  void append_as_is(ByteView wire);
  /// Plain bytes that leave as they are: those from before the encryption began.
  void append_unsealed(ByteView plain);
  /// Seals units off the front of `plain` until a good deal of them waits. Answers how many bytes were taken.
  std::size_t seal(ByteView plain);
  /// Whether it may be given bytes that are no whole unit.
  [[nodiscard]] bool seals_any_bytes() const { return cipher_.seals_any_bytes(); }
  /// What is to be given to the operating system next; empty: nothing is.
  [[nodiscard]] ByteView waiting() const { return ByteView(wire_).subspan(head_); }
  /// It has taken so many bytes of that. Answers how many plain bytes have thereby left, each with the last
  /// byte of its unit.
  std::size_t sent(std::size_t wire_bytes);
  /// Plain bytes that were taken and have not left.
  [[nodiscard]] std::size_t plain_bytes() const { return plain_bytes_; }
  [[nodiscard]] std::size_t memory_bytes() const { return wire_.capacity(); }
  void release_memory();

 private:
  /// A unit: it has left when so much of the wire's stream has.
  struct Unit {
    std::uint64_t wire_end = 0;
    std::size_t plain_bytes = 0;
  };
  void add_unit(std::size_t plain_bytes);
  void drop_sent();

  WireCipher& cipher_;
  std::vector<std::byte> wire_;
  std::size_t head_ = 0;          // of wire_, already sent
  std::uint64_t sent_total_ = 0;  // of the wire's stream
  std::deque<Unit> units_;
  std::size_t plain_bytes_ = 0;
};

}  // namespace lightq::broker
