/// Accepts connections until a budget, descriptors or memory run out, then pauses. Layer: net.
#include "net/listener.hpp"

#include <chrono>
#include <utility>

#include "admission/memory_reserve.hpp"

namespace lightq::broker {

namespace {
constexpr int accepts_per_turn = 64;
constexpr int accepts_when_scarce = 16;
constexpr auto pause_without_descriptors = std::chrono::milliseconds(200);
constexpr auto pause_without_memory = std::chrono::milliseconds(200);
constexpr auto pause_without_budget = std::chrono::milliseconds(10);
constexpr auto pause_in_crowd = std::chrono::milliseconds(10);
}  // namespace

Listener::Listener(EventLoop& loop, ListeningSocket socket, Owner& owner, AcceptBudget& budget,
                   std::size_t reserved)
    : loop_(loop), socket_(std::move(socket)), owner_(owner), budget_(budget), reserved_(reserved) {}

Listener::~Listener() {
  stop();
  loop_.cancel(pause_timer_);
  loop_.cancel_soon(*this);
}

bool Listener::start() {
  accepting_ = static_cast<bool>(loop_.watch(socket_.descriptor.get(), *this));
  return accepting_;
}

void Listener::stop() {
  if (!socket_.descriptor.valid()) return;
  if (accepting_) loop_.unwatch(socket_.descriptor.get(), *this);
  accepting_ = false;
  socket_.file.remove();  // before the close: the open socket keeps its inode number from another file
  socket_.descriptor.reset();
}

void Listener::on_ready() {
  if (MemoryReserve::is_low()) {
    MemoryReserve::refill();
    if (MemoryReserve::is_low()) return pause(pause_without_memory);
  }
  const auto now = EventLoop::Clock::now();
  for (int i = 0; i < accepts_per_turn && accepting_; ++i) {
    const bool enough = i < accepts_when_scarce || !budget_.scarce();
    if (!enough || !budget_.take(now)) return pause(pause_without_budget);
    auto peer = accept_connection(socket_, reserved_);
    if (peer.outcome == AcceptOutcome::none) {
      budget_.give_back();
      if (budget_.crowded(now)) pause(pause_in_crowd);
      return;
    }
    if (peer.outcome == AcceptOutcome::out_of_descriptors) {
      owner_.accept_failed();
      return pause(pause_without_descriptors);
    }
    if (!owner_.accepted(std::move(peer.descriptor))) return;
  }
}

void Listener::pause(EventLoop::Clock::duration time) {
  if (accepting_) loop_.unwatch(socket_.descriptor.get(), *this);
  accepting_ = false;
  pause_timer_ = loop_.at(EventLoop::Clock::now() + time, [this] {
    if (!socket_.descriptor.valid() || start()) return;
    owner_.accept_failed();  // the socket cannot be watched, for example for lack of memory
    pause(pause_without_memory);
  });
}

}  // namespace lightq::broker
