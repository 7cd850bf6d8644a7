/// Encrypted output of a connection, and the plain bytes that it corresponds to. Layer: net.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include <lightq/base/types.hpp>

#include "net/wire_cipher.hpp"

namespace lightq::broker {

/// Encrypts output a little ahead of the operating system, which takes the encrypted bytes. Maps sent
/// encrypted bytes back to plain bytes: those of a unit (one call of WireCipher::seal) count as sent with the
/// unit's last byte. Thread: one.
///
/// Example: two units of 100 plain bytes are encrypted to 120 bytes each. After 200 encrypted bytes were
/// sent, 100 plain bytes count as sent.
class SealedOutput {
 public:
  /// Lifetime: `cipher` outlives this.
  explicit SealedOutput(WireCipher& cipher) : cipher_(cipher) {}

  /// Appends bytes that are sent unchanged and do not count as plain bytes, for example those of a handshake.
  void append_as_is(ByteView wire);
  /// Appends plain bytes that are sent in clear, because they were buffered before the encryption began.
  void append_unsealed(ByteView plain);
  /// Encrypts units from the front of `plain` until 128 KiB of encrypted bytes wait. Returns how many plain
  /// bytes were encrypted.
  std::size_t seal(ByteView plain);
  /// Returns true if `seal` accepts plain bytes that are cut anywhere, not only whole units.
  [[nodiscard]] bool seals_any_bytes() const { return cipher_.seals_any_bytes(); }
  /// Returns the bytes to send next; empty if there are none.
  [[nodiscard]] ByteView waiting() const { return ByteView(wire_).subspan(head_); }
  /// Called when the operating system has taken `wire_bytes` of the waiting bytes. Returns how many plain
  /// bytes thereby count as sent.
  std::size_t sent(std::size_t wire_bytes);
  /// Returns the number of plain bytes that were encrypted or appended in clear and do not count as sent.
  [[nodiscard]] std::size_t plain_bytes() const { return plain_bytes_; }
  [[nodiscard]] std::size_t memory_bytes() const { return wire_.capacity(); }
  /// Frees the memory if no bytes wait.
  void release_memory();

 private:
  /// A unit of encrypted bytes.
  struct Unit {
    std::uint64_t wire_end = 0;  // its end in the stream of encrypted bytes
    std::size_t plain_bytes = 0;
  };
  void add_unit(std::size_t plain_bytes);
  void drop_sent();

  WireCipher& cipher_;
  std::vector<std::byte> wire_;
  std::size_t head_ = 0;          // bytes at the front of wire_ that were sent
  std::uint64_t sent_total_ = 0;  // encrypted bytes ever sent
  std::deque<Unit> units_;
  std::size_t plain_bytes_ = 0;
};

}  // namespace lightq::broker
