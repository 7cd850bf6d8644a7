/// Limits the memory that all sessions share with their clients. Layer: session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "admission/fair_share.hpp"

namespace lightq::broker {

/// Limits the bytes, and the number of sessions that share memory, because each needs file descriptors.
/// A user with half of either leaves the last eighth to others (FairShare). Any thread.
class MemoryBudget {
 public:
  MemoryBudget(std::size_t bytes_max, std::size_t sessions_max)
      : books_(std::make_shared<Books>(bytes_max, sessions_max)) {}

  /// Takes so many bytes for a session of the user (TicketHolder::sharer). Returns false if the user may not
  /// have them.
  bool take(std::uint64_t user, std::size_t bytes) { return books_->take(user, bytes); }
  /// Gives back all the bytes that one session has taken.
  void give_back(std::uint64_t user, std::size_t bytes) { books_->give_back(user, bytes); }
  /// Returns an object that gives back a session's bytes when its last copy is destroyed. It may outlive the
  /// budget.
  [[nodiscard]] std::shared_ptr<void> place_of(std::uint64_t user, std::size_t bytes) const {
    return {nullptr, [books = books_, user, bytes](void*) { books->give_back(user, bytes); }};
  }
  [[nodiscard]] std::size_t taken() const { return books_->taken(); }

 private:
  /// The amounts taken. Any thread.
  class Books {
   public:
    Books(std::size_t bytes_max, std::size_t sessions_max)
        : bytes_share_(bytes_max), sessions_share_(sessions_max) {}
    bool take(std::uint64_t user, std::size_t bytes) {
      const std::lock_guard lock(mutex_);
      const auto found = taken_by_.find(user);
      const Taken own = found == taken_by_.end() ? Taken{} : found->second;
      constexpr auto room = FairShare::Verdict::room;
      if (bytes_share_.ask(taken_.bytes, user, own.bytes, bytes) != room ||
          sessions_share_.ask(taken_.sessions, user, own.sessions) != room)
        return false;
      taken_by_[user] = {own.bytes + bytes, own.sessions + 1};
      taken_ = {taken_.bytes + bytes, taken_.sessions + 1};
      return true;
    }
    void give_back(std::uint64_t user, std::size_t bytes) {
      const std::lock_guard lock(mutex_);
      const auto own = taken_by_.find(user);
      if (own == taken_by_.end()) return;
      taken_ = {taken_.bytes - bytes, taken_.sessions - 1};
      own->second = {own->second.bytes - bytes, own->second.sessions - 1};
      if (own->second.sessions == 0) taken_by_.erase(own);
    }
    [[nodiscard]] std::size_t taken() {
      const std::lock_guard lock(mutex_);
      return taken_.bytes;
    }

   private:
    struct Taken {
      std::size_t bytes = 0;
      std::size_t sessions = 0;
    };

    const FairShare bytes_share_;
    const FairShare sessions_share_;
    std::mutex mutex_;  // guards the members below
    Taken taken_;
    std::unordered_map<std::uint64_t, Taken> taken_by_;  // by user; no entry is empty
  };

  const std::shared_ptr<Books> books_;
};

}  // namespace lightq::broker
