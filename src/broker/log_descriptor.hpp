/// A descriptor that lines of the broker's log are written to, which may take nothing for long. Layer:
/// logging.
#pragma once

#include <atomic>
#include <string_view>

namespace lightq::broker {

/// A pipe that nobody reads, a terminal that was stopped: waits until there is room, but not longer than it
/// is told to. It does not own the descriptor. One thread.
class LogDescriptor {
 public:
  explicit LogDescriptor(int descriptor) : descriptor_(descriptor) {}

  /// Whether all was written; waits for room until then, or until `give_up` is set, which it looks at every
  /// 50 ms.
  bool write(std::string_view bytes, const std::atomic<bool>& give_up) const;

 private:
  [[nodiscard]] bool wait_for_room(const std::atomic<bool>& give_up) const;

  const int descriptor_;
};

}  // namespace lightq::broker
