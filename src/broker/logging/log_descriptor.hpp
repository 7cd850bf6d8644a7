/// A descriptor for lines of the broker's log, which may block for a long time. Layer: logging.
#pragma once

#include <atomic>
#include <string_view>

namespace lightq::broker {

/// Writes to a descriptor that may block, such as a pipe without a reader or a stopped terminal. Waits for
/// space, but not longer than the caller permits. Does not own the descriptor. One thread.
class LogDescriptor {
 public:
  explicit LogDescriptor(int descriptor) : descriptor_(descriptor) {}

  /// Returns true if all bytes were written. Waits for space until then, or until `give_up` is set, which it
  /// checks every 50 ms.
  bool write(std::string_view bytes, const std::atomic<bool>& give_up) const;

 private:
  [[nodiscard]] bool wait_for_room(const std::atomic<bool>& give_up) const;

  const int descriptor_;
};

}  // namespace lightq::broker
