/// Accepts the connections of a listening socket. Layer: net.
#pragma once

#include <cstddef>

#include <lightq/base/limits.hpp>

#include "admission/accept_budget.hpp"
#include "net/event_loop.hpp"
#include "net/socket.hpp"

namespace lightq::broker {

/// Owns a listening socket and passes its connections to an owner. Pauses in four cases: memory is short, no
/// descriptor is free, the thread's budget of new connections is used up, or many unauthenticated peers
/// connect and disconnect. Thread: the loop's.
class Listener final : public EventLoop::Source {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    /// Called with each accepted connection. An owner that does not keep the descriptor thereby closes the
    /// connection. Returns false if the connection has taken a place that it gives back at its end. The
    /// listener then accepts the next one in a later turn of the loop. Otherwise clients that connect, are
    /// served and leave while it accepts could fill all places, because nobody notices their ends meanwhile.
    virtual bool accepted(UniqueFd descriptor) = 0;
    /// Called when no descriptor is free, or when the socket cannot be watched again after a pause. The
    /// listener tries again after 200 ms.
    virtual void accept_failed() = 0;
  };

  /// Takes a socket that listens already. `reserved`: the number of descriptors that are left for other uses.
  /// Lifetime: `loop`, `owner` and `budget` outlive the listener.
  Listener(EventLoop& loop, ListeningSocket socket, Owner& owner, AcceptBudget& budget,
           std::size_t reserved = limits::descriptors_reserved);
  ~Listener() override;

  /// Begins to accept. Returns false if the socket cannot be watched.
  bool start();
  /// Closes the socket and removes its file. No connection is accepted afterwards.
  void stop();

  void on_ready() override;

 private:
  void pause(EventLoop::Clock::duration time);

  EventLoop& loop_;
  ListeningSocket socket_;
  Owner& owner_;
  AcceptBudget& budget_;
  const std::size_t reserved_;
  bool accepting_ = false;
  EventLoop::TimerId pause_timer_ = 0;
};

}  // namespace lightq::broker
