/// How much memory all sessions share with their clients. Layer: session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "broker/delivery/fair_share.hpp"

namespace lightq::broker {

/// Bounds it; who has half of it leaves the last eighth to others. Any thread.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::size_t bytes_max) : share_(bytes_max) {}

  /// Whether the user (TicketHolder::sharer) may have so much more; then he has.
  bool take(std::uint64_t user, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto own = taken_by_.find(user);
    const std::size_t has = own == taken_by_.end() ? 0 : own->second;
    if (share_.ask(taken_, user, has, bytes) != FairShare::Verdict::room) return false;
    taken_ += bytes;
    taken_by_[user] += bytes;
    return true;
  }
  void give_back(std::uint64_t user, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto own = taken_by_.find(user);
    if (own == taken_by_.end()) return;
    taken_ -= bytes;
    own->second -= bytes;
    if (own->second == 0) taken_by_.erase(own);
  }
  [[nodiscard]] std::size_t taken() {
    const std::lock_guard lock(mutex_);
    return taken_;
  }

 private:
  const FairShare share_;
  std::mutex mutex_;  // guards what follows
  std::size_t taken_ = 0;
  std::unordered_map<std::uint64_t, std::size_t> taken_by_;  // by user; none that has nothing
};

}  // namespace lightq::broker
