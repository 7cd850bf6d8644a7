/// Whether a connection is opening, open or closed, and why it ends. Layer: net.
#pragma once

#include <new>
#include <string>

#include "net/event_loop.hpp"

namespace lightq::broker {

/// How a connection stands (opening, open, parked, failed, closed), and why it ends. The connection owns it;
/// its parts and derived classes call it. A connection ends in two steps: `fail` gives the reason, and the
/// connection closes when its present callback is over. A parked connection is open for its peer, but is
/// not read any more. Thread: the loop's.
class ConnectionLife {
 public:
  /// Lifetime: both outlive it.
  ConnectionLife(EventLoop& loop, EventLoop::Source& connection) : loop_(loop), connection_(connection) {}
  ConnectionLife(const ConnectionLife&) = delete;
  ConnectionLife& operator=(const ConnectionLife&) = delete;

  [[nodiscard]] bool is_opening() const { return state_ == State::opening; }
  [[nodiscard]] bool is_open() const { return state_ == State::open; }
  [[nodiscard]] bool is_closed() const { return state_ == State::closed; }
  /// Returns true if the connection has been open, even if it has ended since.
  [[nodiscard]] bool was_open() const { return was_open_; }
  void open() {
    state_ = State::open;
    was_open_ = true;
  }
  void close() { state_ = State::closed; }

  /// Ends the connection when the current callback is over. The first reason counts.
  void fail(const std::string& why) {
    if (failed()) return;
    failure_ = why;
    loop_.call_soon(connection_);  // for a failure outside its callbacks, e.g. while delivery flushes
  }
  /// Ends the connection as `fail` does, because there is no memory for its bytes.
  void fail_for_memory() { fail("the broker has too little memory for the connection's data"); }
  /// Calls `work`, which needs memory for this connection's bytes. Returns false if there is none; then the
  /// connection ends, and nothing that `work` appended to the output is sent.
  template <typename Work>
  bool with_memory(Work&& work) {
    try {
      work();
      return true;
    } catch (const std::bad_alloc&) {
      fail_for_memory();
      return false;
    }
  }
  [[nodiscard]] bool failed() const { return !failure_.empty(); }
  [[nodiscard]] const std::string& failure() const { return failure_; }

  /// Parks the connection of a peer that sent nonsense. `why`: the reason with which it closes later.
  void park(const std::string& why) { parked_for_ = why; }
  [[nodiscard]] bool is_parked() const { return !parked_for_.empty(); }
  [[nodiscard]] const std::string& parked_for() const { return parked_for_; }

  /// Marks the beginning and the end of a callback of the connection.
  void begin_callback() { in_callback_ = true; }
  void end_callback() { in_callback_ = false; }
  [[nodiscard]] bool is_in_callback() const { return in_callback_; }

 private:
  enum class State { opening, open, closed };

  EventLoop& loop_;
  EventLoop::Source& connection_;
  State state_ = State::opening;
  bool was_open_ = false;
  bool in_callback_ = false;
  std::string failure_;
  std::string parked_for_;
};

}  // namespace lightq::broker
