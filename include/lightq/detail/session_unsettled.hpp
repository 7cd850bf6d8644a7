/// Keeps the messages that a consumer on a session received and has not settled (acknowledged or rejected).
/// Layer: client.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <type_traits>
#include <vector>

#include <lightq/base/types.hpp>
#include <lightq/detail/hand_outs.hpp>

namespace lightq::inline v1 {

/// Messages, and the bytes of their payloads.
struct SessionAmount {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;

  SessionAmount& operator+=(const SessionAmount& more) {
    messages += more.messages;
    bytes += more.bytes;
    return *this;
  }
  friend bool operator==(const SessionAmount&, const SessionAmount&) = default;
};

/// The unsettled messages, as ranges of offsets with their sizes in bytes. If a range is settled in pieces,
/// each piece counts its share of the bytes, and together they count exactly the range's bytes. One thread.
class SessionUnsettled {
 public:
  /// Adds a range. Returns how much of it was unsettled before: these messages have been redelivered, and
  /// count once.
  SessionAmount add(OffsetRange range, std::uint64_t bytes, HandOut hand_out = 0) {
    const SessionAmount before = settle(range, [](const OffsetRange&) {});
    pieces_.emplace_hint(pieces_.end(), range.end.value, Piece{range.begin.value, bytes, hand_out});
    messages_ += distance(range.begin, range.end);
    return before;
  }

  /// Removes the unsettled messages of `range`, and calls `visit(OffsetRange)`, or `visit(OffsetRange,
  /// HandOut)`, for each piece of them, in ascending order. Returns their number and size. Always inlined,
  /// because it is called for each acknowledged message. Without the attribute, the compiler inlines it only
  /// in large source files.
  template <typename Visit>
  [[gnu::always_inline]] SessionAmount settle(OffsetRange range, Visit&& visit) {
    SessionAmount settled;
    if (range.end <= range.begin) return settled;
    auto piece = pieces_.upper_bound(range.begin.value);
    while (piece != pieces_.end() && piece->second.begin < range.end.value) {
      const std::uint64_t begin = std::max(piece->second.begin, range.begin.value);
      const std::uint64_t end = std::min(piece->first, range.end.value);
      const HandOut hand_out = piece->second.hand_out;
      settled += take(piece, begin, end);
      if constexpr (std::is_invocable_v<Visit&, OffsetRange, HandOut>) {
        visit(OffsetRange{{begin}, {end}}, hand_out);
      } else {
        visit(OffsetRange{{begin}, {end}});
      }
    }
    messages_ -= settled.messages;
    return settled;
  }

  /// Calls `visit(OffsetRange, HandOut)` for each piece of the unsettled messages of `range`, in ascending
  /// order. `visit` must not use this object.
  template <typename Visit>
  void for_each_in(OffsetRange range, Visit&& visit) const {
    for (auto piece = pieces_.upper_bound(range.begin.value);
         piece != pieces_.end() && piece->second.begin < range.end.value; ++piece) {
      visit(OffsetRange{{std::max(piece->second.begin, range.begin.value)},
                        {std::min(piece->first, range.end.value)}},
            piece->second.hand_out);
    }
  }
  /// Returns true if the message at `offset` is unsettled since this hand-out.
  [[nodiscard]] bool holds(Offset offset, HandOut hand_out) const {
    const auto piece = pieces_.upper_bound(offset.value);
    return piece != pieces_.end() && piece->second.begin <= offset.value &&
           piece->second.hand_out == hand_out;
  }

  /// Returns all offsets that are not unsettled, and those in `waiting`, as ascending ranges that do not
  /// touch each other. Example: [10, 30) is unsettled, waiting is [20, 30): returns [0, 10) and [20,
  /// UINT64_MAX).
  [[nodiscard]] std::vector<OffsetRange> gaps(OffsetRange waiting) const {
    std::vector<OffsetRange> gaps;
    std::uint64_t from = 0;
    const auto skip = [&](std::uint64_t begin, std::uint64_t end) {
      if (begin >= end) return;
      if (from < begin) gaps.push_back({{from}, {begin}});
      from = end;
    };
    for (const auto& [end, piece] : pieces_) {
      skip(piece.begin, std::min(end, waiting.begin.value));
      skip(std::max(piece.begin, waiting.end.value), end);
    }
    if (from < UINT64_MAX) gaps.push_back({{from}, {UINT64_MAX}});
    return gaps;
  }

  /// Removes everything. Returns how much it was.
  SessionAmount clear() {
    SessionAmount all{messages_, 0};
    for (const auto& [end, piece] : pieces_) all.bytes += piece.bytes;
    pieces_.clear();
    messages_ = 0;
    return all;
  }

  [[nodiscard]] std::uint64_t messages() const { return messages_; }

 private:
  struct Piece {
    std::uint64_t begin;
    std::uint64_t bytes;
    HandOut hand_out;
  };
  using Pieces = std::map<std::uint64_t, Piece>;  // by end: settling in order then changes no key

  /// Takes [begin, end) out of `piece`, and moves `piece` on to the next one after the range.
  SessionAmount take(Pieces::iterator& piece, std::uint64_t begin, std::uint64_t end) {
    const SessionAmount front = share(piece->second, piece->first, begin);
    const std::uint64_t front_begin = piece->second.begin;
    piece->second.begin = begin;
    piece->second.bytes -= front.bytes;
    const SessionAmount taken = share(piece->second, piece->first, end);
    if (front.messages != 0) [[unlikely]]
      split(piece, begin, Piece{front_begin, front.bytes, piece->second.hand_out});
    if (end == piece->first) {
      piece = pieces_.erase(piece);
    } else {
      piece->second.begin = end;
      piece->second.bytes -= taken.bytes;
      ++piece;
    }
    return taken;
  }
  /// Adds the front of a piece, which ends at `end`. Not inlined, because it is rare if messages are settled
  /// in order.
  [[gnu::noinline]] void split(Pieces::iterator behind, std::uint64_t end, const Piece& front) {
    pieces_.emplace_hint(behind, end, front);
  }
  /// Returns how much of a piece, which ends at `end`, lies before `at`. Uses the average size of a message,
  /// because a product of a count and bytes could overflow; a whole piece counts exactly.
  static SessionAmount share(const Piece& piece, std::uint64_t end, std::uint64_t at) {
    const std::uint64_t all = end - piece.begin;
    const std::uint64_t part = at - piece.begin;
    return {part, part == all ? piece.bytes : piece.bytes / all * part};
  }

  Pieces pieces_;
  std::uint64_t messages_ = 0;
};

}  // namespace lightq::inline v1
