/// Bounds the work of one source of an event loop before other sources get their turn. Layer: admission.
#pragma once

#include <cstdint>

#include <lightq/base/limits.hpp>

#include "admission/turn_work.hpp"

namespace lightq::broker {

/// The share that one call of a source has in a turn of the event loop. It is measured in bytes of TurnWork:
/// 1 MiB takes about a millisecond. Thread: the loop's.
class TurnShare {
 public:
  /// The most work of one call of one source.
  static constexpr std::uint64_t call_work_max = 1 * limits::MiB;
  /// The most work of all sources in a turn. Beyond it each source takes one frame or request and leaves the
  /// rest.
  static constexpr std::uint64_t turn_work_max = 4 * limits::MiB;
  /// Beyond this work, nothing more is received in the turn.
  static constexpr std::uint64_t turn_work_hard_max = 2 * turn_work_max;

  /// Called at the beginning of a call of the source.
  void begin() {
    from_ = TurnWork::bytes();
    is_used_up_ = false;
  }
  /// Returns true if this call has done more than call_work_max, without regard to other sources.
  [[nodiscard]] bool is_spent() const { return TurnWork::bytes() - from_ > call_work_max; }
  /// Called between two frames. Returns true if the remaining frames have to wait for a later turn.
  [[nodiscard]] bool use_up() { return is_used_up_ = is_spent() || turn_is_over(); }
  /// Returns the last result of `use_up`.
  [[nodiscard]] bool is_used_up() const { return is_used_up_; }
  /// Returns true if the turn's work is above turn_work_max.
  [[nodiscard]] static bool turn_is_over() { return TurnWork::in_turn() > turn_work_max; }
  /// Returns true if the turn's work is above turn_work_hard_max.
  [[nodiscard]] static bool turn_is_long_over() { return TurnWork::in_turn() > turn_work_hard_max; }

 private:
  std::uint64_t from_ = 0;
  bool is_used_up_ = false;
};

}  // namespace lightq::broker
