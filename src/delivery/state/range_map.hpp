/// A map from ranges of offsets to values. Layer: delivery.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>

#include <lightq/base/fetch_ahead.hpp>
#include <lightq/base/types.hpp>

#include "admission/turn_work.hpp"

namespace lightq::broker {

/// Maps ranges that do not overlap to values. Adjacent ranges with equal values are merged into one.
/// Each range that a call visits counts as work of this turn (TurnWork). A plain value for one thread.
/// Example: after assign([0, 5), a) and assign([3, 8), b) it has the ranges [0, 3) with a and [3, 8) with b.
template <typename Value>
class RangeMap {
 public:
  struct Entry {
    OffsetRange range;
    Value value;
  };

  [[nodiscard]] bool empty() const { return held_.empty(); }
  [[nodiscard]] std::size_t ranges() const { return held_.size(); }
  /// Returns the number of messages in all ranges together.
  [[nodiscard]] std::uint64_t messages() const { return messages_; }
  /// Returns the lowest range. Requires: the map is not empty.
  [[nodiscard]] Entry front() const {
    assert(!held_.empty());
    const auto& [begin, first] = *held_.begin();
    return {{begin, first.end}, first.value};
  }

  /// Sets the value of all of `range`, and replaces any values that it had.
  void assign(OffsetRange range, const Value& value) {
    if (range.begin >= range.end) return;
    cut(range);
    messages_ += distance(range.begin, range.end);
    auto after = held_.lower_bound(range.end);
    if (after != held_.end() && after->first == range.end && after->second.value == value) {
      range.end = after->second.end;
      after = held_.erase(after);
    }
    if (after != held_.begin()) {
      const auto before = std::prev(after);
      if (before->second.end == range.begin && before->second.value == value) {
        before->second.end = range.end;
        return;
      }
    }
    held_.emplace_hint(after, range.begin, Held{range.end, value});
  }

  /// Removes `range`, and calls `removed(part, value)` for each part that was in the map, in ascending order.
  /// `removed` must not use this map.
  template <typename Removed>
  void cut(OffsetRange range, Removed&& removed) {
    cut_picked(range, [](const Value&) { return true; }, removed);
  }
  /// Removes the parts of `range` for whose value `picks(value)` returns true, and calls `removed` as `cut`
  /// does.
  template <typename Picks, typename Removed>
  void cut_picked(OffsetRange range, Picks&& picks, Removed&& removed) {
    if (range.begin >= range.end) return;
    auto at = first_reaching(range.begin);
    while (at != held_.end() && at->first < range.end) {
      TurnWork::add(TurnWork::range_passed);
      if (!picks(at->second.value)) {
        ++at;
        continue;
      }
      const OffsetRange whole{at->first, at->second.end};
      const OffsetRange part{std::max(whole.begin, range.begin), std::min(whole.end, range.end)};
      const Value value = at->second.value;
      if (whole.begin < part.begin) {
        at->second.end = part.begin;
        ++at;
      } else {
        at = held_.erase(at);
      }
      if (part.end < whole.end) at = std::next(held_.emplace_hint(at, part.end, Held{whole.end, value}));
      messages_ -= distance(part.begin, part.end);
      removed(part, value);
    }
  }
  void cut(OffsetRange range) {
    cut(range, [](OffsetRange, const Value&) {});
  }

  /// Calls `change(part, value)` for each part of `range` in the map, in ascending order, to modify its
  /// value.
  template <typename Change>
  void update(OffsetRange range, Change&& change) {
    if (range.begin >= range.end) return;
    split_at(range.begin);
    split_at(range.end);
    auto at = held_.lower_bound(range.begin);
    for (auto changed = at; changed != held_.end() && changed->first < range.end; ++changed) {
      TurnWork::add(TurnWork::range_passed);
      change(OffsetRange{changed->first, changed->second.end}, changed->second.value);
    }
    if (at != held_.begin()) --at;
    while (at != held_.end() && at->first < range.end) {
      const auto next = std::next(at);
      if (next == held_.end() || next->first != at->second.end || next->second.value != at->second.value) {
        at = next;
        continue;
      }
      at->second.end = next->second.end;
      held_.erase(next);
    }
  }

  /// Removes each range if `picks(value)` returns true, and calls `removed` as `cut` does.
  template <typename Picks, typename Removed>
  void cut_if(Picks&& picks, Removed&& removed) {
    TurnWork::add(TurnWork::range_passed * held_.size());
    for (auto at = held_.begin(); at != held_.end();) {
      if (!picks(at->second.value)) {
        ++at;
        continue;
      }
      const Entry entry{{at->first, at->second.end}, at->second.value};
      at = held_.erase(at);
      messages_ -= distance(entry.range.begin, entry.range.end);
      removed(entry.range, entry.value);
    }
  }

  /// Calls `visit(range, value)` for each range, in ascending order.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    TurnWork::add(TurnWork::range_passed * held_.size());
    for (const auto& [begin, held] : held_) visit(OffsetRange{begin, held.end}, held.value);
  }

  /// Returns the first range that ends after `offset`, whole, or nothing if there is none.
  [[nodiscard]] std::optional<Entry> first_behind(Offset offset) const {
    const auto at = first_reaching(offset);
    if (at == held_.end()) return std::nullopt;
    return Entry{{at->first, at->second.end}, at->second.value};
  }

  /// Returns how many messages of `range` are in the map.
  [[nodiscard]] std::uint64_t messages_in(OffsetRange range) const {
    std::uint64_t messages = 0;
    for (auto at = first_reaching(range.begin); at != held_.end() && at->first < range.end; ++at) {
      TurnWork::add(TurnWork::range_passed);
      messages += distance(std::max(at->first, range.begin), std::min(at->second.end, range.end));
    }
    return messages;
  }

  /// Prefetches the lowest range.
  void fetch_ahead_front() const {
    if (!held_.empty()) fetch_ahead(&*held_.begin());
  }

  void clear() {
    TurnWork::add(TurnWork::range_passed * held_.size());
    held_.clear();
    messages_ = 0;
  }

 private:
  struct Held {
    Offset end;
    Value value;
  };

  /// Splits the range that contains `offset`, so that one begins there. Does nothing if no range crosses it.
  void split_at(Offset offset) {
    const auto at = first_reaching(offset);
    if (at == held_.end() || at->first >= offset) return;
    held_.emplace_hint(std::next(at), offset, Held{at->second.end, at->second.value});
    at->second.end = offset;
  }

  /// Returns the first range that ends after `offset`.
  template <typename Map>
  static auto first_reaching(Map& held, Offset offset) {
    auto at = held.upper_bound(offset);
    if (at == held.begin()) return at;
    const auto before = std::prev(at);
    return before->second.end > offset ? before : at;
  }
  auto first_reaching(Offset offset) { return first_reaching(held_, offset); }
  auto first_reaching(Offset offset) const { return first_reaching(held_, offset); }

  std::map<Offset, Held> held_;  // by begin
  std::uint64_t messages_ = 0;
};

}  // namespace lightq::broker
