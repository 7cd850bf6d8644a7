/// The letters that a reactor has sent and that no other one has taken yet. Layer: topic.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

namespace lightq::broker {

/// Counts the bytes of dead letters in the mailboxes of other reactors, and of this one. The number of a
/// mailbox's tasks has a bound, but a letter may be as long as a message.
/// LetterOffice owns it. Thread: the office's; a Share may end on any.
class LettersInTransit {
 public:
  /// Counts its letters until the last copy is destroyed. May outlive the object that made it.
  using Share = std::shared_ptr<const void>;

  explicit LettersInTransit(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  /// Returns true if more may be sent. So the bytes exceed the limit by less than the letters of one round.
  [[nodiscard]] bool has_room() const { return bytes() < bytes_max_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_->load(std::memory_order_relaxed); }
  [[nodiscard]] Share add(std::size_t bytes) {
    bytes_->fetch_add(bytes, std::memory_order_relaxed);
    return {nullptr,
            [count = bytes_, bytes](const void*) { count->fetch_sub(bytes, std::memory_order_relaxed); }};
  }

 private:
  const std::size_t bytes_max_;
  std::shared_ptr<std::atomic<std::size_t>> bytes_ = std::make_shared<std::atomic<std::size_t>>(0);
};

}  // namespace lightq::broker
