/// A connection whose bytes go through memory that broker and client share; its socket only tells the end.
/// docs/session.md, "Shared memory". Layer: endpoint.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <lightq/base/types.hpp>
#include <lightq/protocol/session_memory.hpp>

#include "broker/endpoint/emptying_thread.hpp"
#include "broker/endpoint/shared_wake.hpp"

namespace lightq::broker {

/// No call waits. The connection's thread.
class SharedWire {
 public:
  /// `place`: counts the memory, and is let go when that is emptied.
  SharedWire(std::unique_ptr<session::SharedRings> rings, SharedWake wake, std::shared_ptr<void> place = {})
      : rings_(std::move(rings)), wake_(std::move(wake)), place_(std::move(place)) {}
  SharedWire(const SharedWire&) = delete;
  SharedWire& operator=(const SharedWire&) = delete;
  /// A client may keep the memory mapped: it is emptied, so that what nobody counts any more is next to none.
  ~SharedWire() { empty_apart(std::move(rings_), !ended_, std::move(place_)); }

  /// Becomes readable, once, when something comes for which this side waits. -1: the socket does.
  [[nodiscard]] int descriptor() const { return wake_.of_broker(); }
  /// The client has closed its socket.
  void end() { ended_ = true; }
  /// It has. What it wrote before can still be read.
  [[nodiscard]] bool ended() const { return ended_; }
  /// The client has written into the memory what cannot be.
  [[nodiscard]] bool broken() const { return rings_->reader().broken() || rings_->writer().broken(); }

  [[nodiscard]] bool has_input() { return input_bytes() > 0; }
  [[nodiscard]] std::size_t input_bytes() { return rings_->reader().available(); }
  /// Copies what has come, behind the first `skipped` bytes of it, to `to`; it stays until `release`.
  std::size_t copy(std::span<std::byte> to, std::size_t skipped = 0) {
    return rings_->reader().copy(to, skipped);
  }
  /// The first `bytes` of it were taken; the client may write there again. `wipe`: they stay in no memory.
  void release(std::size_t bytes, bool wipe);
  /// False: something has come meanwhile. True: the descriptor becomes readable when
  /// something comes.
  [[nodiscard]] bool wait_for_input() { return rings_->reader().wait(); }

  /// Takes as much of `first` and then `second` as there is room for.
  std::size_t send(ByteView first, ByteView second);
  /// False: there is room by now. True: the descriptor becomes readable when there is.
  [[nodiscard]] bool wait_for_room() { return rings_->writer().wait(); }
  /// There is no room: lets others run that want this processor, if much has been sent since the client was
  /// woken last, in a short time. It may stand behind this thread, which need not wait for anything, and
  /// systems let it until their next tick, which is up to 10 ms. A client that is slow by itself is waited
  /// for at nobody's expense.
  void give_way() const;

 private:
  using Clock = std::chrono::steady_clock;

  std::unique_ptr<session::SharedRings> rings_;
  SharedWake wake_;
  std::shared_ptr<void> place_;
  Clock::time_point woken_;       // the client, last
  std::uint64_t sent_bytes_ = 0;  // since then
  bool ended_ = false;
};

}  // namespace lightq::broker
