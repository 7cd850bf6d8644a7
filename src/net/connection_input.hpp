/// The input of a connection: bytes that were received and not consumed. Layer: net.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <lightq/base/limits.hpp>
#include <lightq/base/types.hpp>

#include "admission/memory_reserve.hpp"
#include "admission/turn_share.hpp"
#include "net/large_frame.hpp"
#include "net/wire_cipher.hpp"

namespace lightq::broker {

/// Holds the received bytes of one connection until they are consumed, decrypted if the connection is
/// encrypted. Input arrives in the *scratch* buffer, which all connections of a thread share. The part of
/// it that is not consumed is copied to the *leftover* and comes first next time. A large frame is received
/// into memory of its own. The connection fills it and passes its bytes on; the layer above begins large
/// frames. Thread: the connection's.
///
/// Example: 100 bytes arrive and the first frame takes 60. 40 bytes are the leftover; they are copied to the
/// front of the scratch buffer before the next input is received behind them.
class ConnectionInput {
 public:
  /// Lifetime: `scratch` outlives it.
  explicit ConnectionInput(std::vector<std::byte>& scratch) : scratch_(scratch) {}
  ConnectionInput(const ConnectionInput&) = delete;
  ConnectionInput& operator=(const ConnectionInput&) = delete;
  ~ConnectionInput() = default;

  // For the layer above.

  /// Returns the frame that is received into memory of its own. While one is under way, there are no leftover
  /// bytes.
  [[nodiscard]] LargeFrame& large_frame() { return large_frame_; }
  /// Returns the share of a turn (TurnShare) that the present input may use.
  [[nodiscard]] TurnShare& turn_share() { return turn_share_; }
  [[nodiscard]] const TurnShare& turn_share() const { return turn_share_; }
  /// Permits encrypted frames of up to `bytes` from now on.
  void allow_frames_of(std::uint64_t bytes) {
    if (cipher_ != nullptr) cipher_->allow_units_of(bytes);
  }

  // For the connection.

  /// Returns the space of the large frame under way, or an empty span. Throws std::bad_alloc.
  std::span<std::byte> space_in_large_frame() { return large_frame_.space(); }
  /// Copies the leftover to the scratch buffer and returns the space behind it.
  std::span<std::byte> space_behind_leftover() {
    std::copy(leftover_.begin(), leftover_.end(), scratch_.begin());
    return scratch().subspan(leftover_.size());
  }
  /// Returns the leftover and the `bytes` bytes that were received into the space behind it. There is no
  /// leftover afterwards.
  std::span<std::byte> join(std::size_t bytes) {
    const std::size_t whole = leftover_.size() + bytes;
    leftover_.clear();
    return scratch().first(whole);
  }
  [[nodiscard]] std::span<std::byte> scratch() { return scratch_; }

  /// Called before bytes are consumed.
  void begin() {
    was_paused_ = false;
    turn_share_.begin();
  }
  /// Called when the connection stops reading.
  void note_pause() { was_paused_ = true; }
  /// Keeps the rest that was not consumed. Returns true if it can be consumed without further input, so that
  /// it must be consumed before more is read: reading was paused meanwhile, or the turn share is used up. The
  /// present pause alone does not tell, because reading may have been resumed meanwhile.
  bool keep(ByteView rest) {
    keep_leftover(rest);
    leftover_unseen_ = (was_paused_ || turn_share_.is_used_up()) && !leftover_.empty();
    return leftover_unseen_;
  }
  /// Keeps bytes that were not passed on yet, and must be before more is read.
  void keep_unseen(ByteView bytes) {
    keep_leftover(bytes);
    leftover_unseen_ = true;
  }
  [[nodiscard]] const std::vector<std::byte>& leftover() const { return leftover_; }
  /// Returns true if the leftover must be consumed before more is read.
  [[nodiscard]] bool leftover_unseen() const { return leftover_unseen_; }
  /// Returns the leftover, to be consumed. There is no leftover afterwards.
  std::vector<std::byte> take_leftover() {
    leftover_unseen_ = false;
    return std::exchange(leftover_, {});
  }
  /// Frees the memory of the leftover if there is none and it has more than `bytes_max`.
  void release_leftover(std::size_t bytes_max = 0) {
    if (leftover_.empty() && leftover_.capacity() > bytes_max) leftover_ = std::vector<std::byte>();
  }
  /// Returns the bytes of memory that count: a leftover of up to one read does not, because the number of
  /// connections bounds those bytes.
  [[nodiscard]] std::size_t memory_bytes() const {
    const std::size_t left = leftover_.capacity() > scratch_.size() ? leftover_.capacity() : 0;
    return large_frame_.memory_bytes() + left + sealed_leftover_.capacity();
  }

  /// Decrypts the input from now on. Returns the cipher. Lifetime: it exists as long as this object.
  WireCipher& decrypt_with(std::unique_ptr<WireCipher> cipher) {
    cipher_ = std::move(cipher);
    return *cipher_;
  }
  /// Returns the cipher, or null if the connection is not encrypted.
  [[nodiscard]] WireCipher* cipher() const { return cipher_.get(); }
  /// Decrypts `wire` and returns the leftover followed by the plain bytes. Keeps a copy of the bytes of
  /// `wire` that are no whole unit yet. Appends the cipher's own messages to `answer`. The caller passes the
  /// result to `give_back` afterwards. Requires: there is a cipher. Throws std::bad_alloc.
  std::vector<std::byte> decrypt(std::span<std::byte> wire, std::vector<std::byte>& answer) {
    const bool behind_others = !sealed_leftover_.empty();
    if (behind_others) {
      const FallibleAllocations fallible;
      sealed_leftover_.insert(sealed_leftover_.end(), wire.begin(), wire.end());
      wire = sealed_leftover_;
    }
    std::vector<std::byte> plain = std::move(decrypted_bytes());
    reserve(plain, leftover_.size() + wire.size() + scratch_.size());
    plain.assign(leftover_.begin(), leftover_.end());
    leftover_.clear();
    const std::size_t used = cipher_->open(wire, plain, answer);
    if (behind_others) {
      sealed_leftover_.erase(sealed_leftover_.begin(),
                             sealed_leftover_.begin() + static_cast<std::ptrdiff_t>(used));
      if (sealed_leftover_.empty()) sealed_leftover_ = std::vector<std::byte>();
    } else {
      sealed_leftover_.assign(wire.begin() + static_cast<std::ptrdiff_t>(used), wire.end());
    }
    return plain;
  }
  static void give_back(std::vector<std::byte> plain) {
    plain.clear();
    if (plain.capacity() > decrypted_kept_max) plain = std::vector<std::byte>();
    decrypted_bytes() = std::move(plain);
  }

 private:
  static constexpr std::size_t decrypted_kept_max = 1 * limits::MiB;

  /// Throws std::bad_alloc.
  static void reserve(std::vector<std::byte>& bytes, std::size_t capacity) {
    const FallibleAllocations fallible;
    bytes.reserve(capacity);
  }
  /// The buffer into which a thread's connections decrypt input. Empty between two inputs.
  static std::vector<std::byte>& decrypted_bytes() {
    static thread_local std::vector<std::byte> bytes;
    return bytes;
  }
  void keep_leftover(ByteView bytes) {
    reserve(leftover_, bytes.size());
    leftover_.assign(bytes.begin(), bytes.end());
  }

  std::vector<std::byte>& scratch_;
  std::vector<std::byte> leftover_;
  LargeFrame large_frame_;
  TurnShare turn_share_;
  bool was_paused_ = false;  // since `begin`
  bool leftover_unseen_ = false;
  std::unique_ptr<WireCipher> cipher_;      // null: not encrypted
  std::vector<std::byte> sealed_leftover_;  // encrypted bytes that are no whole unit yet
};

}  // namespace lightq::broker
