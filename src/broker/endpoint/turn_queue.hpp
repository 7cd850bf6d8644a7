/// Slices work that costs a reactor much and its client little. Layer: endpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>

#include "broker/endpoint/event_loop.hpp"

namespace lightq::broker {

/// In each turn of the loop a bounded amount of such work is done. Clients that come later wait: one user
/// after the other, and of each user one client after the other. The reactor's thread.
class TurnQueue final : public EventLoop::Source {
 public:
  /// In bytes of TurnWork: less than a millisecond.
  static constexpr std::uint64_t turn_bytes = 1024 * 1024;

  /// Somebody who has such work to do. Must `forget` itself before it goes.
  class Waiter {
   public:
    Waiter() = default;
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    virtual ~Waiter() = default;
    /// It is its turn: `ask` says true now.
    virtual void on_turn() = 0;

   private:
    friend class TurnQueue;
    bool waits_ = false;
    std::uint64_t user_ = 0;
  };

  explicit TurnQueue(EventLoop& loop) : loop_(loop) {}
  ~TurnQueue() override { loop_.cancel_soon(*this); }

  /// Returns true if it may work now, and `spend`s what that costs. Else on_turn is called later.
  bool ask(Waiter& waiter, std::uint64_t user);
  void spend(std::uint64_t bytes);
  void forget(Waiter& waiter);
  void on_ready() override;

 private:
  void begin_turn();

  EventLoop& loop_;
  std::uint64_t turn_ = 0;  // of the loop
  std::uint64_t left_ = turn_bytes;
  const Waiter* called_ = nullptr;
  std::unordered_map<std::uint64_t, std::deque<Waiter*>> waiting_;  // by user; those with any
  std::deque<std::uint64_t> users_;                                 // of these, in turn
};

}  // namespace lightq::broker
