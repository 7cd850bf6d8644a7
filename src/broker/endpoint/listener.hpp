/// Accepts a listening socket's connections, and stops for a while when there are no descriptors, when too
/// many came, or when many come and go. Layer: endpoint.
#pragma once

#include <cstddef>

#include <lightq/base/limits.hpp>

#include "broker/endpoint/accept_budget.hpp"
#include "broker/endpoint/event_loop.hpp"
#include "broker/endpoint/socket.hpp"

namespace lightq::broker {

/// The loop's thread.
class Listener final : public EventLoop::Source {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    /// A peer; closed at once by an owner that does not keep it.
    virtual void accepted(UniqueFd descriptor) = 0;
    /// Out of descriptors: who waits is tried again in a fifth of a second.
    virtual void accept_failed() = 0;
  };

  /// `loop`, `owner` and `budget` outlive it. `reserved`: descriptors that it leaves to others.
  Listener(EventLoop& loop, ListeningSocket socket, Owner& owner, AcceptBudget& budget,
           std::size_t reserved = limits::descriptors_reserved);
  ~Listener() override;

  /// Begins to accept. False: the socket could not be watched.
  bool start();
  /// Closes the socket, and removes its file: nobody is accepted any more.
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
