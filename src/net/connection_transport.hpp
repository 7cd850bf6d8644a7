/// The descriptor of a connection, how the event loop watches it, and memory that the peer shares.
/// Layer: net.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

#include "net/event_loop.hpp"
#include "net/shared_wire.hpp"
#include "net/socket.hpp"

namespace lightq::broker {

/// Moves the bytes of one connection between the two machines or processes, without a look at them. Owns the
/// socket and the shared memory. Watches the socket as the connection needs it: for input unless it is
/// paused, space while output is blocked. With shared memory all bytes go through the memory, and the socket
/// only carries wakes and shows the end. The connection owns and calls it. Thread: the loop's.
class ConnectionTransport {
 public:
  /// The state of the output.
  enum class Flow {
    open,
    blocked,  ///< the system takes no more bytes now
    broken,   ///< the peer takes no more bytes at all
  };

  /// `connection` is called for the events. Lifetime: `loop` and `connection` outlive it.
  ConnectionTransport(EventLoop& loop, EventLoop::Source& connection, UniqueFd descriptor)
      : loop_(loop), connection_(connection), descriptor_(std::move(descriptor)) {}
  ConnectionTransport(const ConnectionTransport&) = delete;
  ConnectionTransport& operator=(const ConnectionTransport&) = delete;
  ~ConnectionTransport() { close(); }

  /// Begins to watch the socket. Returns false if the loop could not.
  [[nodiscard]] bool watch();
  /// Stops watching the socket and closes it.
  void close();
  [[nodiscard]] bool is_closed() const { return !descriptor_.valid(); }
  /// Returns the number of the socket's descriptor, which this object still owns.
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }

  /// Stops or resumes watching for input.
  void set_paused(bool paused);
  [[nodiscard]] bool is_paused() const { return paused_; }
  /// Sets the state of the output; while it is blocked, watches for space.
  void set_flow(Flow flow);
  [[nodiscard]] Flow flow() const { return flow_; }
  /// Records that blocked output may be tried again. The next `set_flow` changes the watching.
  void note_writable() { flow_ = Flow::open; }
  /// Records a hang-up that was reported while the input was paused. Some of the peer's bytes may be unread.
  void note_hang_up() { peer_gone_ = true; }
  /// Returns true if the peer has closed its side, as far as that is known.
  [[nodiscard]] bool peer_gone() const { return peer_gone_; }
  /// Returns true if the peer's machine has stopped answering ours.
  [[nodiscard]] bool is_peer_lost() const { return !is_closed() && answers_nothing(descriptor_.get()); }
  /// Returns true if the peer is a process of this machine, connected to a Unix socket.
  [[nodiscard]] bool is_local() const;

  /// Reads from the socket, as ::recv does. Never waits.
  [[nodiscard]] ssize_t receive(std::span<std::byte> to) const { return broker::receive(descriptor_, to); }
  /// Returns true if bytes wait in shared memory or, without that, in the socket.
  [[nodiscard]] bool has_input() const { return is_shared() ? shared_->has_input() : has_unreceived_input(); }
  /// Returns true if the socket has input, or the system does not tell.
  [[nodiscard]] bool has_unreceived_input() const;
  /// Makes the socket readable only when `bytes` bytes or the end have arrived.
  void set_low_water(std::size_t bytes);
  [[nodiscard]] std::size_t low_water() const { return low_water_; }
  /// Shrinks the socket's receive buffer to the minimum.
  void keep_little() const { broker::keep_little(descriptor_.get()); }
  /// Tells the peer that no more output follows. Input is still received, so that the last output reaches the
  /// peer: closing a socket with unread input may discard output that was sent before.
  void shut_output() const;

  /// Sends `bytes` immediately, and copies of `descriptors` with them. Returns the number of bytes sent, as
  /// ::sendmsg does. Requires: a Unix socket.
  [[nodiscard]] ssize_t send_descriptors(ByteView bytes, std::span<const int> descriptors) const;
  /// From now on input and output go through shared memory. `place` counts the memory against a limit, and is
  /// released once the memory has been emptied (empty_apart). Errors: io_error.
  Result<void> share(std::unique_ptr<session::SharedRings> rings, SharedWake wake,
                     std::shared_ptr<void> place);
  [[nodiscard]] bool is_shared() const { return shared_ != nullptr; }
  /// Returns the shared memory. Requires: is_shared().
  [[nodiscard]] SharedWire& shared() const { return *shared_; }
  /// Handles an event of the socket when the bytes go through shared memory: reads the wakes, and notes the
  /// end. Called before the memory is read, so that later input wakes this side again.
  void take_wakes(EventLoop::Readiness readiness);
  /// Called at the connection's turns. If wakes have been left in the socket for 100 ms, reads them and
  /// returns true. Then output that waits may have space.
  [[nodiscard]] bool take_late_wakes();

 private:
  void update_interest();
  void read_wakes();
  void read_wakes_later();
  void stop_waking();

  EventLoop& loop_;
  EventLoop::Source& connection_;
  UniqueFd descriptor_;
  EventLoop::Interest interest_ = EventLoop::Interest::readable;
  Flow flow_ = Flow::open;
  bool paused_ = false;
  bool watched_ = false;
  bool peer_gone_ = false;
  std::size_t low_water_ = 1;           // the bytes that make the descriptor readable
  int woken_by_ = -1;                   // the descriptor that wakes this side once shared_ is set
  EventLoop::TimerId wakes_timer_ = 0;  // runs while wakes are left in the socket
  bool wakes_are_late_ = false;         // it has ended
  std::unique_ptr<SharedWire> shared_;
};

}  // namespace lightq::broker
