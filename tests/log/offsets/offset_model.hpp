/// A set of offsets in plain containers, to compare with OffsetSet. Layer: tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include <lightq/base/types.hpp>

#include "log/offsets/offset_set.hpp"
#include "log/offsets/offset_set_builder.hpp"

namespace lightq::test {

/// Maximal runs, by begin. Slow and simple.
class OffsetModel {
 public:
  void add(OffsetRange range) {
    if (range.end <= range.begin) return;
    std::uint64_t begin = range.begin.value;
    std::uint64_t end = range.end.value;
    auto at = reaching(begin);
    while (at != runs_.end() && at->first <= end) {
      begin = std::min(begin, at->first);
      end = std::max(end, at->second);
      at = runs_.erase(at);
    }
    runs_[begin] = end;
  }
  std::vector<OffsetRange> remove(OffsetRange range) {
    std::vector<OffsetRange> removed;
    if (range.end <= range.begin) return removed;
    auto at = reaching(range.begin.value);
    while (at != runs_.end() && at->first < range.end.value) {
      const auto [begin, end] = *at;
      at = runs_.erase(at);
      const OffsetRange part{{std::max(begin, range.begin.value)}, {std::min(end, range.end.value)}};
      if (begin < range.begin.value) runs_[begin] = std::min(end, range.begin.value);
      if (range.end.value < end) at = runs_.emplace(range.end.value, end).first;
      if (part.begin < part.end) removed.push_back(part);
      if (range.end.value < end) break;
    }
    return removed;
  }
  void clear() { runs_.clear(); }
  [[nodiscard]] bool empty() const { return runs_.empty(); }
  [[nodiscard]] std::vector<OffsetRange> runs() const {
    std::vector<OffsetRange> runs;
    for (const auto& [begin, end] : runs_) runs.push_back({{begin}, {end}});
    return runs;
  }
  [[nodiscard]] std::uint64_t size() const {
    std::uint64_t size = 0;
    for (const auto& [begin, end] : runs_) size += end - begin;
    return size;
  }
  [[nodiscard]] std::uint64_t count_in(OffsetRange range) const {
    std::uint64_t count = 0;
    for (const auto& [begin, end] : runs_) {
      const std::uint64_t from = std::max(begin, range.begin.value);
      const std::uint64_t to = std::min(end, range.end.value);
      if (from < to) count += to - from;
    }
    return count;
  }
  [[nodiscard]] std::optional<OffsetRange> first_behind(Offset offset) const {
    for (const auto& [begin, end] : runs_) {
      if (offset.value < end) return OffsetRange{{begin}, {end}};
    }
    return std::nullopt;
  }

 private:
  /// Returns the first run that ends at `offset` or later.
  std::map<std::uint64_t, std::uint64_t>::iterator reaching(std::uint64_t offset) {
    auto at = runs_.upper_bound(offset);
    if (at != runs_.begin() && offset <= std::prev(at)->second) --at;
    return at;
  }

  std::map<std::uint64_t, std::uint64_t> runs_;
};

inline std::vector<OffsetRange> runs_of(const log::OffsetSet& set) {
  std::vector<OffsetRange> runs;
  set.for_each([&](OffsetRange run) { runs.push_back(run); });
  return runs;
}

inline log::OffsetSet set_of(const std::vector<OffsetRange>& runs) {
  log::OffsetSetBuilder builder;
  for (const OffsetRange& run : runs) builder.append(run);
  return builder.finish();
}

/// Returns a set with the same runs in as little memory as possible.
inline log::OffsetSet compact_copy(const log::OffsetSet& set) {
  log::OffsetSetBuilder builder;
  set.for_each([&](OffsetRange run) { builder.append(run); });
  return builder.finish();
}

}  // namespace lightq::test
