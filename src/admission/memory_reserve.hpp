/// Reserves memory for small allocations when the system has none left, and lets large ones fail. Layer:
/// admission.
#pragma once

#include <cstddef>
#include <utility>

#include <lightq/base/limits.hpp>

namespace lightq::broker {

/// The memory reserve of the process. Most allocations of the broker are small and happen in the middle of a
/// change to a topic, a table or a list. Such a change cannot be interrupted. If the system has no memory for
/// a small allocation, the new-handler frees a piece of the reserve for it. The connection that is being
/// served then ends (EventLoop::Source::out_of_memory), and the reserve is filled again. Allocations that a
/// peer can make large fail instead: see FallibleAllocations.
///
/// Thread: any.
class MemoryReserve {
 public:
  static constexpr std::size_t piece_bytes = 64 * limits::KiB;
  static constexpr std::size_t pieces_max = 128;

  /// Fills the reserve and installs the new-handler and the terminate handler. From then on, if no memory is
  /// left at all, the process ends and writes the reason to standard error. It does the same when an
  /// exception ends it. Requires: no other thread runs yet.
  static void install();
  /// Fills the reserve again, as far as the system has memory. Does nothing unless installed.
  static void refill();
  /// Returns true if less than half of the reserve is left. Listeners accept no connections then.
  [[nodiscard]] static bool is_low();
  /// Returns true if the calling thread has used the reserve since its last call of this function.
  [[nodiscard]] static bool take_used() { return std::exchange(used_, false); }
  /// Ends the process because no memory is left, and writes that to standard error.
  [[noreturn]] static void give_up();

 private:
  friend class FallibleAllocations;
  static void find_memory();

  static inline thread_local bool used_ = false;
  static inline thread_local unsigned fallible_ = 0;
};

/// Lets allocations of the calling thread fail while an object of this class lives. An allocation that finds
/// no memory then throws std::bad_alloc and does not use the reserve. Use it for memory that a peer can make
/// large. Requires: the caller has changed nothing yet that an exception would leave half done.
class FallibleAllocations {
 public:
  FallibleAllocations() { ++MemoryReserve::fallible_; }
  FallibleAllocations(const FallibleAllocations&) = delete;
  FallibleAllocations& operator=(const FallibleAllocations&) = delete;
  ~FallibleAllocations() { --MemoryReserve::fallible_; }
};

}  // namespace lightq::broker
