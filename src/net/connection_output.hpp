/// The output of a connection: buffers it, sends it, and stops while the system takes no more. Layer: net.
#pragma once

#include "net/connection_life.hpp"
#include "net/connection_memory.hpp"
#include "net/connection_transport.hpp"
#include "net/framing.hpp"
#include "net/output_buffer.hpp"

namespace lightq::broker {

/// A connection's output buffer that sends over the connection's transport. Callers append and then call
/// `flush`. If the system does not take all bytes, the rest waits until the connection is writable. A
/// connection that lives by its output fails when the peer takes no more. The connection owns it; the layer
/// above appends and flushes. Thread: the connection's.
class ConnectionOutput : public OutputBuffer {
 public:
  /// Lifetime: all outlive it.
  ConnectionOutput(ConnectionTransport& transport, ConnectionLife& life, ConnectionMemory& memory,
                   const Framing& framing)
      : transport_(transport), life_(life), memory_(memory), framing_(framing) {}

  /// Returns true if the system takes no more bytes now.
  [[nodiscard]] bool is_blocked() const { return transport_.flow() == Flow::blocked; }
  /// Returns true if the peer takes no more bytes at all.
  [[nodiscard]] bool is_broken() const { return transport_.flow() == Flow::broken; }

  /// Sends buffered output, and watches for space if some of it remains.
  void flush() { flush_with({}); }
  /// Sends buffered output as `flush` does, followed by `behind`, straight from its place. Copies only the
  /// bytes of `behind` that the system does not take.
  void flush_with(ByteView behind) {
    if (is_broken() || life_.failed() || transport_.is_closed()) return;
    const bool was_blocked = is_blocked();
    FlushOutcome outcome = FlushOutcome::broken;
    const bool flushed = life_.with_memory([&] {
      if (was_blocked) {
        append(behind);
      } else if (!transport_.is_shared() || !transport_.peer_gone() || !transport_.is_paused()) {
        outcome = OutputBuffer::flush_with(transport_.descriptor(), behind);
      }
    });
    if (!flushed || was_blocked) return;
    switch (outcome) {
      case FlushOutcome::all_sent: return transport_.set_flow(Flow::open);
      case FlushOutcome::blocked: return block();
      case FlushOutcome::broken: break;
    }
    transport_.set_flow(Flow::broken);
    if (!life_.is_open() || framing_.lives_by_output()) life_.fail("closed by the peer");
  }

 private:
  using Flow = ConnectionTransport::Flow;

  void block() {
    transport_.set_flow(Flow::blocked);
    memory_.note(false);
    if (transport_.is_shared()) transport_.shared().give_way();
  }

  ConnectionTransport& transport_;
  ConnectionLife& life_;
  ConnectionMemory& memory_;
  const Framing& framing_;
};

}  // namespace lightq::broker
