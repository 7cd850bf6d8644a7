/// A session's transport through memory that broker and client share. docs/session.md, "Shared memory".
/// Layer: net.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include <lightq/base/types.hpp>
#include <lightq/protocol/session_memory.hpp>

#include "net/emptying_thread.hpp"
#include "net/shared_wake.hpp"

namespace lightq::broker {

/// Owns the broker's ends of two rings in shared memory, one for each direction. All bytes of the session go
/// through the rings; the socket only shows the end of the connection, and carries wakes. No call waits.
/// Thread: the connection's.
class SharedWire {
 public:
  using Clock = std::chrono::steady_clock;
  using Now = Clock::time_point (*)() noexcept;

  /// `place`: counts the memory against a limit. It is released when the memory has been emptied.
  /// `now`: the clock; a test passes its own.
  SharedWire(std::unique_ptr<session::SharedRings> rings, SharedWake wake, std::shared_ptr<void> place = {},
             Now now = &Clock::now)
      : rings_(std::move(rings)), wake_(std::move(wake)), place_(std::move(place)), now_(now) {}
  SharedWire(const SharedWire&) = delete;
  SharedWire& operator=(const SharedWire&) = delete;
  /// Empties the memory on another thread. The client may keep it mapped when no limit counts it any more;
  /// emptied, it takes almost no memory.
  ~SharedWire() { empty_apart(std::move(rings_), !ended_, std::move(place_)); }

  /// Returns the descriptor that becomes readable once when input or space arrives that this side waits for.
  /// Returns -1 if the socket becomes readable instead.
  [[nodiscard]] int descriptor() const { return wake_.of_broker(); }
  /// Called when the client has closed its socket.
  void end() { ended_ = true; }
  /// Returns true if the client has closed its socket. Bytes that it wrote before can still be read.
  [[nodiscard]] bool ended() const { return ended_; }
  /// Returns true if the client has written impossible values into the rings' positions.
  [[nodiscard]] bool broken() const { return rings_->reader().broken() || rings_->writer().broken(); }

  [[nodiscard]] bool has_input() { return input_bytes() > 0; }
  /// Returns the number of bytes that can be read.
  [[nodiscard]] std::size_t input_bytes() { return rings_->reader().available(); }
  /// Copies input to `to`, without the first `skipped` bytes. Returns how many bytes were copied. They stay
  /// in the ring until `release`.
  std::size_t copy(std::span<std::byte> to, std::size_t skipped = 0) {
    return rings_->reader().copy(to, skipped);
  }
  /// Gives the space of the first `bytes` bytes of input back to the client, and wakes it if it waits for
  /// space.
  void release(std::size_t bytes);
  /// Asks to be woken. Returns true if the descriptor will become readable when input arrives; false if input
  /// has arrived meanwhile.
  [[nodiscard]] bool wait_for_input() { return rings_->reader().wait(); }
  /// Returns true once after the client has cleared a word that says that this side waits, for input or for
  /// space. The client does so before it sends the wake. Costs no system call.
  [[nodiscard]] bool take_woken() {
    const unsigned for_input = rings_->reader().take_woken() ? 1 : 0;
    const unsigned wakes = for_input + (rings_->writer().take_woken() ? 1 : 0);
    asked_for_ += wakes;
    return wakes > 0;
  }
  /// Called when wakes may have arrived over the socket. Returns true if they should be read now: after a
  /// few, so that the socket never fills up, and if this side did not ask for any. If not, they must be read
  /// later: other bytes may have arrived with them.
  [[nodiscard]] bool should_read_wakes() {
    static_cast<void>(take_woken());
    const unsigned asked_for = std::exchange(asked_for_, 0);
    wakes_unread_ += asked_for;
    if (asked_for > 0 && wakes_unread_ < wakes_unread_max) return false;
    wakes_unread_ = 0;
    return true;
  }
  /// Called when the wakes in the socket were read although `should_read_wakes` did not ask for it.
  void note_wakes_read() { wakes_unread_ = 0; }

  /// Copies as much of `first` and then of `second` as there is space for, and wakes the client if it waits
  /// for input. Returns how many bytes were copied.
  std::size_t send(ByteView first, ByteView second);
  /// Asks to be woken. Returns true if the descriptor will become readable when there is space; false if
  /// there is space by now.
  [[nodiscard]] bool wait_for_room() { return rings_->writer().wait(); }
  /// Called when the ring is full. Yields the processor if at least 0.5 GB/s were sent since the client was
  /// woken last. Then the client may be queued behind this thread on the same processor. Without a yield the
  /// client could wait there for the system's next tick, up to 10 ms. For a client that is slow by itself
  /// nothing is yielded.
  void give_way() const;

 private:
  // The smallest buffer that a socket can have takes six wakes on x86-64.
  static constexpr unsigned wakes_unread_max = 4;

  std::unique_ptr<session::SharedRings> rings_;
  SharedWake wake_;
  std::shared_ptr<void> place_;
  Now now_;
  Clock::time_point woken_;       // when the client was woken last
  std::uint64_t sent_bytes_ = 0;  // sent since woken_
  unsigned asked_for_ = 0;  // wakes that the client has been asked for and answers, until should_read_wakes
  unsigned wakes_unread_ = 0;  // wakes that this side asked for and that are still in the socket
  bool ended_ = false;
};

}  // namespace lightq::broker
