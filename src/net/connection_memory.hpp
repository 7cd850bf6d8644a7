/// The memory of a connection's buffers, and how it counts against the bound of all. Layer: net.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "admission/buffer_budget.hpp"
#include "net/connection_input.hpp"
#include "net/connection_life.hpp"
#include "net/connection_transport.hpp"
#include "net/framing.hpp"
#include "net/output_buffer.hpp"

namespace lightq::broker {

/// Tells a BufferBudget how many bytes one connection keeps, and releases them when the budget asks. The
/// connection owns it; the connection and its output call `note`. Thread: the connection's.
class ConnectionMemory final : public BufferBudget::Holder {
 public:
  /// `budget`: null if nothing is bounded. Lifetime: all outlive it.
  ConnectionMemory(EventLoop& loop, const Framing& framing, ConnectionLife& life,
                   const ConnectionTransport& transport, ConnectionInput& input, OutputBuffer& output,
                   BufferBudget* budget)
      : loop_(loop),
        framing_(framing),
        life_(life),
        transport_(transport),
        input_(input),
        output_(output),
        budget_(budget) {}
  ConnectionMemory(const ConnectionMemory&) = delete;
  ConnectionMemory& operator=(const ConnectionMemory&) = delete;
  ~ConnectionMemory() override { forget(); }

  /// Reports the bytes that the connection keeps now. `moved`: some of them have just been received or sent.
  void note(bool moved) {
    if (!is_counted_ && buffered_bytes() < BufferBudget::counted_from) return;
    if (budget_ == nullptr || life_.is_closed() || life_.failed()) return;
    is_counted_ = budget_->note(*this, moved, loop_.call_time());
  }
  /// Returns true if the budget counts this connection.
  [[nodiscard]] bool is_counted() const { return is_counted_; }
  /// Called when the connection has ended: nothing counts any more.
  void forget() {
    if (std::exchange(is_counted_, false)) budget_->forget(*this);
  }
  /// Frees the memory that holds no bytes.
  void release() {
    output_.release_memory();
    input_.large_frame().release_memory();
    input_.release_leftover();
  }

  [[nodiscard]] std::size_t buffered_bytes() const override {
    return input_.memory_bytes() + framing_.held_bytes() + output_.memory_bytes();
  }
  void release_spare_memory() override {
    if (!life_.is_in_callback()) release();
  }
  void end_soon(const std::string& why) override { life_.fail(why); }
  [[nodiscard]] bool waits_for_us() const override {
    return transport_.is_paused() && transport_.flow() != ConnectionTransport::Flow::blocked;
  }
  [[nodiscard]] std::uint64_t held_by() const override { return framing_.held_by(); }

 private:
  EventLoop& loop_;
  const Framing& framing_;
  ConnectionLife& life_;
  const ConnectionTransport& transport_;
  ConnectionInput& input_;
  OutputBuffer& output_;
  BufferBudget* const budget_;
  bool is_counted_ = false;
};

}  // namespace lightq::broker
