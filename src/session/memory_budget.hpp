/// Limits the memory that all sessions share with their clients. Layer: session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "admission/quota.hpp"

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
        : bytes_({.total = bytes_max}), sessions_({.total = sessions_max}) {}
    bool take(std::uint64_t user, std::size_t bytes) {
      constexpr auto room = FairShare::Verdict::room;
      const std::lock_guard lock(mutex_);
      if (bytes_.ask(user, bytes) != room || sessions_.take(user) != room) return false;
      bytes_.add(user, bytes);
      return true;
    }
    void give_back(std::uint64_t user, std::size_t bytes) {
      const std::lock_guard lock(mutex_);
      bytes_.give_back(user, bytes);
      sessions_.give_back(user);
    }
    [[nodiscard]] std::size_t taken() {
      const std::lock_guard lock(mutex_);
      return bytes_.total();
    }

   private:
    std::mutex mutex_;  // guards both: a session takes of both or of none
    Quota<std::uint64_t> bytes_;
    Quota<std::uint64_t> sessions_;
  };

  const std::shared_ptr<Books> books_;
};

}  // namespace lightq::broker
