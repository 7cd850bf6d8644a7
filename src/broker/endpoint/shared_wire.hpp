/// A connection whose bytes go through memory that broker and client share; its socket only tells the end.
/// docs/session.md, "Shared memory". Layer: endpoint.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <lightq/base/types.hpp>
#include <lightq/base/wake_event.hpp>
#include <lightq/protocol/session_memory.hpp>

namespace lightq::broker {

/// No call waits. The connection's thread.
class SharedWire {
 public:
  SharedWire(std::unique_ptr<session::SharedRings> rings, WakeEvents events)
      : rings_(std::move(rings)), events_(std::move(events)) {}
  SharedWire(const SharedWire&) = delete;
  SharedWire& operator=(const SharedWire&) = delete;
  /// A client may keep the memory mapped: it is emptied, so that what nobody counts any more is next to none.
  ~SharedWire() { rings_->empty(!ended_); }

  /// Becomes readable, once, when something comes for which this side waits.
  [[nodiscard]] int descriptor() const { return events_.broker.descriptor(); }
  /// The client has closed its socket.
  void end() { ended_ = true; }
  /// It has. What it wrote before can still be read.
  [[nodiscard]] bool ended() const { return ended_; }
  /// The client has written into the memory what cannot be.
  [[nodiscard]] bool broken() const { return rings_->reader().broken() || rings_->writer().broken(); }

  [[nodiscard]] bool has_input() { return rings_->reader().available() > 0; }
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

 private:
  std::unique_ptr<session::SharedRings> rings_;
  WakeEvents events_;
  bool ended_ = false;
};

}  // namespace lightq::broker
