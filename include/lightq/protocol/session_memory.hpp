/// Shared memory that carries a session's bytes: the frames that request and grant it, and its layout.
/// docs/session.md, "Shared memory". Layer: protocol.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include <lightq/base/byte_ring.hpp>
#include <lightq/base/shared_memory.hpp>
#include <lightq/protocol/session_fields.hpp>
#include <lightq/protocol/session_frame.hpp>

namespace lightq::inline v1::session {

inline constexpr std::uint32_t shared_ring_bytes_min = 4 * limits::KiB;
inline constexpr std::uint32_t shared_ring_bytes_max = 1 * limits::MiB;
/// Bytes for the counters in front of the two rings.
inline constexpr std::size_t shared_words_bytes = 4 * limits::KiB;

/// The sizes of the two rings in bytes, powers of two.
struct SharedSizes {
  std::uint32_t to_broker = 0;
  std::uint32_t to_client = 0;

  [[nodiscard]] bool any() const { return to_broker != 0; }
  /// Returns the size of the whole memory.
  [[nodiscard]] std::size_t whole() const {
    return shared_words_bytes + std::size_t{to_broker} + std::size_t{to_client};
  }
  friend bool operator==(const SharedSizes&, const SharedSizes&) = default;
};

/// The body of the frames `share` and `shared`.
template <Op which>
struct Sharing {
  static constexpr Op op = which;
  SharedSizes sizes;
  bool wakes_by_socket = false;  ///< false: each side wakes the other through descriptors sent with `shared`

  [[nodiscard]] std::uint8_t flags() const {
    return wakes_by_socket ? flag_wakes_by_socket : std::uint8_t{0};
  }
  static Result<Sharing> decode(ByteView body, std::uint8_t flags) {
    FieldParser fields(body);
    Sharing sharing;
    sharing.wakes_by_socket = (flags & flag_wakes_by_socket) != 0;
    for (std::uint32_t* const bytes : {&sharing.sizes.to_broker, &sharing.sizes.to_client}) {
      *bytes = fields.number<std::uint32_t>("the size", shared_ring_bytes_min, shared_ring_bytes_max);
      if (!std::has_single_bit(*bytes)) fields.fail("the size is not a power of two");
    }
    return fields.finish(sharing);
  }
  void encode(FieldWriter fields) const { fields.number(sizes.to_broker).number(sizes.to_client); }
  friend bool operator==(const Sharing&, const Sharing&) = default;
};
using Share = Sharing<Op::share>;
using Shared = Sharing<Op::shared>;

enum class SharedSide { broker, client };

/// One side's ends of both rings, and the memory that the rings lie in. Not movable. For one thread.
class SharedRings {
 public:
  /// Requires: `memory` has `sizes.whole()` bytes. They are zero, except where the other side has already
  /// written.
  SharedRings(SharedMemory memory, const SharedSizes& sizes, SharedSide side)
      : memory_(std::move(memory)),
        reader_(words(side == SharedSide::broker ? 0 : 1), bytes(sizes, side == SharedSide::broker)),
        writer_(words(side == SharedSide::broker ? 1 : 0), bytes(sizes, side != SharedSide::broker)) {}
  SharedRings(const SharedRings&) = delete;
  SharedRings& operator=(const SharedRings&) = delete;
  ~SharedRings() = default;

  /// Drops the rings' content at the end of a session and returns their memory to the system. The content is
  /// gone for both sides. With `but_unread`, bytes that the other side has not read stay for it, up to 64
  /// KiB.
  void empty(bool but_unread) {
    const auto unused = writer_.unused();
    const std::size_t unread = writer_.size() - unused[0].size() - unused[1].size();
    if (!but_unread || writer_.broken() || unread > unread_bytes_kept_max)
      return memory_.empty(memory_.bytes());
    for (const std::span<std::byte> part : unused) memory_.empty(part);
    memory_.empty(reader_.bytes());
  }
  [[nodiscard]] ByteRingReader& reader() { return reader_; }
  [[nodiscard]] ByteRingWriter& writer() { return writer_; }

 private:
  // About as many bytes as a socket keeps for a peer that does not read.
  static constexpr std::size_t unread_bytes_kept_max = 64 * limits::KiB;

  /// Returns the counters of the ring to the broker (0) or to the client (1).
  [[nodiscard]] ByteRingWords& words(std::size_t which) const {
    // The system's memory contains no C++ objects; these types are nothing but their bytes.
    return *std::launder(
        reinterpret_cast<ByteRingWords*>(memory_.bytes().data() + which * sizeof(ByteRingWords)));
  }
  [[nodiscard]] std::span<std::byte> bytes(const SharedSizes& sizes, bool to_broker) const {
    return to_broker ? memory_.bytes().subspan(shared_words_bytes, sizes.to_broker)
                     : memory_.bytes().subspan(shared_words_bytes + sizes.to_broker, sizes.to_client);
  }

  SharedMemory memory_;  // the ends lie in it
  ByteRingReader reader_;
  ByteRingWriter writer_;
};

}  // namespace lightq::inline v1::session
