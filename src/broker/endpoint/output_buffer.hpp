/// Bytes on their way to a peer: appended whole frames at a time, passed to the operating system as it takes
/// them. Layer: endpoint.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <lightq/base/limits.hpp>
#include <lightq/base/types.hpp>

#include "broker/endpoint/sealed_output.hpp"
#include "broker/endpoint/shared_wire.hpp"

namespace lightq::broker {

enum class FlushOutcome {
  all_sent,
  blocked,  ///< the socket takes no more now
  broken,   ///< the peer is gone
};

/// One thread. The caller bounds it: append only while buffered() is below the caller's limit.
class OutputBuffer {
 public:
  OutputBuffer() = default;
  OutputBuffer(const OutputBuffer&) = delete;
  OutputBuffer& operator=(const OutputBuffer&) = delete;
  ~OutputBuffer();
  /// Room for `bytes` more at the end, for the caller to fill before any other call. Here and in `append` and
  /// `flush_with`: throws std::bad_alloc where there is no memory for it.
  std::byte* extend(std::size_t bytes);
  void append(ByteView bytes);
  /// Takes back the last `bytes`, which must not have been sent.
  void shrink(std::size_t bytes) { bytes_.resize(bytes_.size() - bytes); }
  /// For encoders that append to a vector; where what was sent is wiped, at most command_room bytes.
  std::vector<std::byte>& tail() {
    if (wipes_) make_room(command_room);
    return bytes_;
  }
  /// From here on plain bytes that have been sent, or sealed, stay in no memory.
  void wipe_sent() { wipes_ = true; }
  static constexpr std::size_t command_room = 4 * limits::KiB;

  [[nodiscard]] std::size_t buffered() const {
    return bytes_.size() - head_ + (sealed_ ? sealed_->plain_bytes() : 0);
  }
  /// Of what is buffered, and kept for more.
  [[nodiscard]] std::size_t memory_bytes() const {
    return bytes_.capacity() + (sealed_ ? sealed_->memory_bytes() : 0);
  }
  /// Bytes ever appended; bytes ever passed on. Positions in the stream to the peer, before any encryption.
  [[nodiscard]] std::uint64_t appended_total() const { return sent_total_ + buffered(); }
  [[nodiscard]] std::uint64_t sent_total() const { return sent_total_; }

  FlushOutcome flush(int descriptor) { return flush_with(descriptor, {}); }
  /// Passes on what is buffered and `behind` it, in one go and straight from where it lies. What the system
  /// does not take of it is buffered; if the peer is gone, nothing is.
  FlushOutcome flush_with(int descriptor, ByteView behind);
  /// From here on what leaves is sealed, in whole units; what is buffered already leaves as it is. `cipher`
  /// outlives it.
  void seal_with(WireCipher& cipher);
  /// From here on what leaves goes through memory, and not to a descriptor; nothing may be buffered. `wire`
  /// outlives it.
  void send_through(SharedWire& wire) { shared_ = &wire; }
  /// Bytes of the cipher's own, which leave as they are. Only after seal_with.
  void append_as_is(ByteView wire) { sealed_->append_as_is(wire); }
  /// Gives memory back while nothing is buffered.
  void release_memory();

 private:
  FlushOutcome flush_sealed(int descriptor, ByteView behind);
  FlushOutcome flush_shared(ByteView behind);
  ByteView passed_on(std::size_t bytes, ByteView behind);
  void make_room(std::size_t bytes);
  void emptied();
  void wipe_from(std::size_t at);

  std::vector<std::byte> bytes_;
  std::size_t head_ = 0;  // already sent, or sealed
  std::uint64_t sent_total_ = 0;
  bool wipes_ = false;
  std::unique_ptr<SealedOutput> sealed_;  // null: nothing is encrypted
  SharedWire* shared_ = nullptr;          // null: what leaves goes to a descriptor
};

}  // namespace lightq::broker
