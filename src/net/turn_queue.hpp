/// Bounds, per turn of the event loop, work that is expensive for a reactor and cheap to request. Layer:
/// net.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>

#include "net/event_loop.hpp"

namespace lightq::broker {

/// Allows a bounded amount of such work in each turn of the loop. Clients beyond that wait. Waiting users get
/// turns in rotation, and the clients of one user follow each other. Thread: the reactor's.
class TurnQueue final : public EventLoop::Source {
 public:
  /// The work of one turn, in bytes of TurnWork: less than a millisecond.
  static constexpr std::uint64_t turn_bytes = 1024 * 1024;

  /// A client with such work. Requires: `forget` is called before a waiter is destroyed.
  class Waiter {
   public:
    Waiter() = default;
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    virtual ~Waiter() = default;
    /// Called when the waiter may work: `ask` returns true now.
    virtual void on_turn() = 0;

   private:
    friend class TurnQueue;
    bool waits_ = false;
    std::uint64_t user_ = 0;
  };

  explicit TurnQueue(EventLoop& loop) : loop_(loop) {}
  ~TurnQueue() override { loop_.cancel_soon(*this); }

  /// Returns true if the waiter may work now; it then passes the cost to `spend`. Otherwise its on_turn is
  /// called later.
  bool ask(Waiter& waiter, std::uint64_t user);
  /// Counts work that was done, in bytes of TurnWork.
  void spend(std::uint64_t bytes);
  /// Removes the waiter from the queue, if it waits.
  void forget(Waiter& waiter);
  void on_ready() override;

 private:
  void begin_turn();

  EventLoop& loop_;
  std::uint64_t turn_ = 0;                                          // the loop's turn that left_ is for
  std::uint64_t left_ = turn_bytes;                                 // work left in this turn
  const Waiter* called_ = nullptr;                                  // the waiter that may work now
  std::unordered_map<std::uint64_t, std::deque<Waiter*>> waiting_;  // by user; no empty queues
  std::deque<std::uint64_t> users_;  // the users in waiting_, the next one first
};

}  // namespace lightq::broker
