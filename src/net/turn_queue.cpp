/// Gives expensive work of a reactor's clients its turns, user by user. Layer: net.
#include "net/turn_queue.hpp"

#include <algorithm>
#include <utility>

namespace lightq::broker {

void TurnQueue::begin_turn() {
  if (turn_ == loop_.turn()) return;
  turn_ = loop_.turn();
  left_ = turn_bytes;
}

bool TurnQueue::ask(Waiter& waiter, std::uint64_t user) {
  begin_turn();
  if (left_ > 0 && (called_ == &waiter || (users_.empty() && !waiter.waits_))) return true;
  if (std::exchange(waiter.waits_, true)) return false;
  waiter.user_ = user;
  auto& of_user = waiting_[user];
  if (of_user.empty()) users_.push_back(user);
  of_user.push_back(&waiter);
  loop_.call_soon(*this);
  return false;
}

/// Subtracts the cost from the turn. While others wait, the client that was called loses its turn, so that it
/// does not work twice in a row.
void TurnQueue::spend(std::uint64_t bytes) {
  begin_turn();
  left_ -= std::min(left_, bytes);
  if (bytes > 0 && !users_.empty()) called_ = nullptr;
}

void TurnQueue::forget(Waiter& waiter) {
  if (called_ == &waiter) called_ = nullptr;
  if (!std::exchange(waiter.waits_, false)) return;
  const auto of_user = waiting_.find(waiter.user_);
  std::erase(of_user->second, &waiter);
  if (!of_user->second.empty()) return;
  waiting_.erase(of_user);
  std::erase(users_, waiter.user_);
}

void TurnQueue::on_ready() {
  begin_turn();
  while (left_ > 0 && !users_.empty()) {
    const std::uint64_t user = users_.front();
    users_.pop_front();
    const auto of_user = waiting_.find(user);
    Waiter* const waiter = of_user->second.front();
    of_user->second.pop_front();
    if (of_user->second.empty()) {
      waiting_.erase(of_user);
    } else {
      users_.push_back(user);
    }
    waiter->waits_ = false;
    called_ = waiter;
    waiter->on_turn();
    called_ = nullptr;
  }
  if (!users_.empty()) loop_.call_soon(*this);
}

}  // namespace lightq::broker
