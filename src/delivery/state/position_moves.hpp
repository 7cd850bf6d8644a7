/// How a group's position was moved, to explain where a message went. Layer: delivery.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <lightq/base/types.hpp>

namespace lightq::broker {

/// Remembers where a group began, and its last moves by seeks and purges since the broker's start.
/// Example: a group was at offset 3, and a seek moved it to 8. Then messages 3 to 7 were skipped. If a later
/// seek moves it back to 5, messages 3 and 4 were skipped, and the group gets 5 to 7.
/// A plain value for one thread.
class PositionMoves {
 public:
  static constexpr std::size_t moves_max = 8;

  /// A seek or a purge.
  struct Move {
    Offset committed;  ///< the group's committed offset before
    Offset next;       ///< the next message before
    Offset to;         ///< the next message afterwards
    bool is_purge = false;
  };

  /// The reason why a group has not had a message that is behind it; `none` if it has had it, or if that is
  /// not known.
  enum class Skip : std::uint8_t { none, before_group, move };

  /// Sets the first message of a group that is created now.
  void begin(Offset start) { start_ = start; }
  /// Adds a move, and forgets the oldest one if there are too many.
  void add(const Move& move) {
    if (moves_.size() == moves_max) moves_.erase(moves_.begin());
    moves_.push_back(move);
  }

  /// Returns the last move that changed whether the group gets the message: past it or back to it. Null if
  /// there was none.
  [[nodiscard]] const Move* last_over(Offset message) const {
    for (auto move = moves_.rbegin(); move != moves_.rend(); ++move) {
      const bool past = move->committed <= message && message < move->to;
      const bool back = move->to <= message && message < move->next;
      if (past || back) return &*move;
    }
    return nullptr;
  }
  /// Returns why the group has not had the message. Requires: it is behind the group's position, and not
  /// waiting or in flight. Messages that were finished behind one that was not count as skipped.
  [[nodiscard]] Skip skip_of(Offset message) const {
    const Move* const last = last_over(message);
    if (last != nullptr) return message < last->to ? Skip::move : Skip::none;
    return message < start_ ? Skip::before_group : Skip::none;
  }

 private:
  Offset start_{};  // 0 also for a group that was found on disk
  std::vector<Move> moves_;
};

}  // namespace lightq::broker
