/// Memory for small allocations where the system has none left, and which allocations may fail. Layer:
/// endpoint.
#pragma once

#include <cstddef>
#include <utility>

#include <lightq/base/limits.hpp>

namespace lightq::broker {

/// Most allocations of the broker are small, and stand in the middle of a change of a topic, a table or a
/// list that cannot be cut off. Where the system has no memory for one, a piece of the reserve is freed for
/// it. The connection that was being served then ends (EventLoop::Source::out_of_memory), and the reserve is
/// filled again. Allocations that a peer can make large fail instead: see FallibleAllocations.
///
/// For the whole process. Thread: any.
class MemoryReserve {
 public:
  static constexpr std::size_t piece_bytes = 64 * limits::KiB;
  static constexpr std::size_t pieces_max = 128;

  /// Fills the reserve, and installs it as the new-handler. From then on a process without any memory left
  /// ends, and says why on standard error, as one does that ends by an exception. Requires: no other thread
  /// runs yet.
  static void install();
  /// Takes memory into it again, as far as there is some.
  static void refill();
  /// Returns true if less than half of it is there: nobody new is to be let in.
  [[nodiscard]] static bool is_low();
  /// Returns true if the calling thread has used it since it asked last.
  [[nodiscard]] static bool take_used() { return std::exchange(used_, false); }
  /// Ends the process for want of memory.
  [[noreturn]] static void give_up();

 private:
  friend class FallibleAllocations;
  static void find_memory();

  static inline thread_local bool used_ = false;
  static inline thread_local unsigned fallible_ = 0;
};

/// While one lives, an allocation of this thread that finds no memory throws std::bad_alloc and leaves the
/// reserve alone. For memory whose size a peer decides, where nothing has been changed that would have to be
/// taken back.
class FallibleAllocations {
 public:
  FallibleAllocations() { ++MemoryReserve::fallible_; }
  FallibleAllocations(const FallibleAllocations&) = delete;
  FallibleAllocations& operator=(const FallibleAllocations&) = delete;
  ~FallibleAllocations() { --MemoryReserve::fallible_; }
};

}  // namespace lightq::broker
