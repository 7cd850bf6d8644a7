/// The output buffer of a connection. Whole frames are appended; the operating system takes bytes as it can.
/// Layer: net.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <lightq/base/types.hpp>

#include "net/sealed_output.hpp"
#include "net/shared_wire.hpp"

namespace lightq::broker {

enum class FlushOutcome {
  all_sent,
  blocked,  ///< the socket or the shared memory takes no more now
  broken,   ///< the peer is gone
};

/// Buffers the bytes that a peer has not received, and sends them in one of three ways: in clear, encrypted
/// (`seal_with`), or through shared memory (`send_through`). The buffer has no limit of its own: callers
/// append only while buffered() is below theirs. Thread: one.
class OutputBuffer {
 public:
  OutputBuffer() = default;
  OutputBuffer(const OutputBuffer&) = delete;
  OutputBuffer& operator=(const OutputBuffer&) = delete;
  /// Appends space for `bytes` bytes and returns it. The caller fills it before any other call. Throws
  /// std::bad_alloc if there is no memory for it.
  std::byte* extend(std::size_t bytes);
  /// Appends a copy of `bytes`. Throws std::bad_alloc if there is no memory for it.
  void append(ByteView bytes);
  /// Removes the last `bytes` bytes. Requires: they are not sent.
  void shrink(std::size_t bytes) { bytes_.resize(bytes_.size() - bytes); }
  /// Returns the buffer for encoders that append to a vector.
  std::vector<std::byte>& tail() { return bytes_; }

  /// Returns the number of plain bytes that were appended and not sent.
  [[nodiscard]] std::size_t buffered() const {
    return bytes_.size() - head_ + (sealed_ ? sealed_->plain_bytes() : 0);
  }
  /// Returns the bytes of memory that the buffer takes, its spare capacity included.
  [[nodiscard]] std::size_t memory_bytes() const {
    return bytes_.capacity() + (sealed_ ? sealed_->memory_bytes() : 0);
  }
  /// Returns the end of the stream to the peer: the number of plain bytes ever appended.
  [[nodiscard]] std::uint64_t appended_total() const { return sent_total_ + buffered(); }
  /// Returns the position in the stream to the peer up to which plain bytes were sent.
  [[nodiscard]] std::uint64_t sent_total() const { return sent_total_; }

  /// Sends the buffered bytes, as far as the system takes them.
  FlushOutcome flush(int descriptor) { return flush_with(descriptor, {}); }
  /// Sends the buffered bytes and then `behind`, if possible with one system call and without copying
  /// `behind`. The rest that the system does not take is buffered. If the peer is gone, nothing is buffered.
  /// Throws std::bad_alloc if there is no memory for the rest.
  FlushOutcome flush_with(int descriptor, ByteView behind);
  /// Encrypts all later output in whole units. Bytes that are buffered already are sent in clear. Lifetime:
  /// `cipher` outlives the buffer.
  void seal_with(WireCipher& cipher);
  /// Sends all later output through shared memory instead of a descriptor. Requires: nothing is buffered.
  /// Lifetime: `wire` outlives the buffer.
  void send_through(SharedWire& wire) { shared_ = &wire; }
  /// Appends bytes that the cipher itself made, which are sent unchanged. Requires: seal_with was called.
  void append_as_is(ByteView wire) { sealed_->append_as_is(wire); }
  /// Frees the memory if nothing is buffered.
  void release_memory();

 private:
  FlushOutcome flush_sealed(int descriptor, ByteView behind);
  FlushOutcome flush_shared(ByteView behind);
  ByteView passed_on(std::size_t bytes, ByteView behind);
  void emptied();

  std::vector<std::byte> bytes_;
  std::size_t head_ = 0;  // bytes at the front that were sent or encrypted
  std::uint64_t sent_total_ = 0;
  std::unique_ptr<SealedOutput> sealed_;  // null: output is not encrypted
  SharedWire* shared_ = nullptr;          // null: output goes to a descriptor
};

}  // namespace lightq::broker
