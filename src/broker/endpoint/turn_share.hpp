/// What one source may do before others get their turn. Layer: endpoint.
#pragma once

#include <cstdint>

#include <lightq/base/limits.hpp>

#include "broker/delivery/turn_work.hpp"

namespace lightq::broker {

/// A call's share of a turn of the event loop, in bytes of TurnWork: 1 MiB takes about a millisecond.
class TurnShare {
 public:
  /// Of one call of one source.
  static constexpr std::uint64_t call_work_max = 1 * limits::MiB;
  /// Of all sources in a turn. From there on each takes one frame, or request, and leaves the rest.
  static constexpr std::uint64_t turn_work_max = 4 * limits::MiB;
  /// From there on nothing more is received in the turn.
  static constexpr std::uint64_t turn_work_hard_max = 2 * turn_work_max;

  /// The source is called.
  void begin() {
    from_ = TurnWork::bytes();
    is_used_up_ = false;
  }
  /// The call has done as much as one may, whatever others did in the turn.
  [[nodiscard]] bool is_spent() const { return TurnWork::bytes() - from_ > call_work_max; }
  /// Asked between two frames: what is left of them has to wait.
  [[nodiscard]] bool use_up() { return is_used_up_ = is_spent() || turn_is_over(); }
  /// As `use_up` said last.
  [[nodiscard]] bool is_used_up() const { return is_used_up_; }
  [[nodiscard]] static bool turn_is_over() { return TurnWork::in_turn() > turn_work_max; }
  [[nodiscard]] static bool turn_is_long_over() { return TurnWork::in_turn() > turn_work_hard_max; }

 private:
  std::uint64_t from_ = 0;
  bool is_used_up_ = false;
};

}  // namespace lightq::broker
