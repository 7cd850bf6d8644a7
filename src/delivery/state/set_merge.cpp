/// Sums and differences of sets of offsets. Layer: delivery.
#include "delivery/state/set_merge.hpp"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

#include "admission/turn_work.hpp"
#include "log/offsets/offset_set_builder.hpp"

namespace lightq::broker {

namespace {

// So many bytes of a set are merged in the time in which one range is added or found.
constexpr std::size_t merged_bytes_per_change = 64;

/// Returns true if so many changes of a set take longer than one walk over it.
bool is_walk_faster(std::size_t changes, const log::OffsetSet& set) {
  return set.bytes() / merged_bytes_per_change < changes;
}

void count_merge(const log::OffsetSet& one, const log::OffsetSet& other) {
  TurnWork::add((one.bytes() + other.bytes()) * TurnWork::set_changed / merged_bytes_per_change);
}

/// Appends the part of `run` that is not below `end`, and raises `end`.
void append_behind(Offset& end, OffsetRange run, log::OffsetSetBuilder& built) {
  if (run.end <= end) return;
  built.append({std::max(run.begin, end), run.end});
  end = run.end;
}

log::OffsetSet merged_two(const log::OffsetSet& one, const log::OffsetSet& other) {
  log::OffsetSet::Runs of_one(one);
  log::OffsetSet::Runs of_other(other);
  log::OffsetSetBuilder built;
  Offset end;
  auto first = of_one.next();
  auto second = of_other.next();
  while (first || second) {
    if (!second || (first && first->begin <= second->begin)) {
      append_behind(end, *first, built);
      first = of_one.next();
    } else {
      append_behind(end, *second, built);
      second = of_other.next();
    }
  }
  return built.finish();
}

/// The next run of one of several sets.
struct MergeHead {
  OffsetRange run;
  std::size_t set;
  bool operator<(const MergeHead& other) const { return other.run.begin < run.begin; }
};

log::OffsetSet merged_many(const std::vector<const log::OffsetSet*>& sets) {
  std::vector<log::OffsetSet::Runs> runs;
  runs.reserve(sets.size());
  std::priority_queue<MergeHead> heads;  // the lowest begin on top
  const auto push = [&](std::size_t set) {
    if (const auto run = runs[set].next()) heads.push({*run, set});
  };
  for (std::size_t set = 0; set < sets.size(); ++set) {
    runs.emplace_back(*sets[set]);
    push(set);
  }
  log::OffsetSetBuilder built;
  Offset end;
  while (!heads.empty()) {
    const MergeHead head = heads.top();
    heads.pop();
    push(head.set);
    append_behind(end, head.run, built);
  }
  return built.finish();
}

}  // namespace

log::OffsetSet merged(std::vector<const log::OffsetSet*> sets) {
  std::erase_if(sets, [](const log::OffsetSet* set) { return set->empty(); });
  if (sets.empty()) return {};
  if (sets.size() == 1) return *sets.front();
  if (sets.size() == 2) return merged_two(*sets[0], *sets[1]);
  return merged_many(sets);
}

log::OffsetSet without(const log::OffsetSet& set, const log::OffsetSet& removed) {
  if (set.empty() || removed.empty()) return set;
  log::OffsetSetBuilder built;
  log::OffsetSet::Runs kept(set);
  log::OffsetSet::Runs cuts(removed);
  auto cut = cuts.next();
  while (auto run = kept.next()) {
    while (cut && cut->begin < run->end) {
      if (run->begin < cut->begin) built.append({run->begin, cut->begin});
      run->begin = std::max(run->begin, cut->end);
      if (run->end < cut->end) break;  // it may cut the next run, too
      cut = cuts.next();
    }
    if (run->begin < run->end) built.append(*run);
  }
  return built.finish();
}

void add_ranges(log::OffsetSet& set, std::span<const OffsetRange> ranges) {
  if (ranges.size() < 2 || !is_walk_faster(ranges.size(), set)) {
    TurnWork::add(TurnWork::set_changed * ranges.size());
    for (const OffsetRange& range : ranges) set.add(range);
    return;
  }
  log::OffsetSetBuilder built;
  for (const OffsetRange& range : ranges) built.append(range);
  const log::OffsetSet added = built.finish();
  count_merge(set, added);
  set = merged({&set, &added});
}

void add_all(log::OffsetSet& set, const log::OffsetSet& added) {
  if (added.empty()) return;
  if (set.bytes() < added.bytes()) {
    const log::OffsetSet smaller = std::exchange(set, added);
    return add_all(set, smaller);
  }
  // A run takes at least one byte.
  if (is_walk_faster(added.bytes(), set)) {
    count_merge(set, added);
    set = merged({&set, &added});
    return;
  }
  added.for_each([&](OffsetRange run) {
    TurnWork::add(TurnWork::set_changed);
    set.add(run);
  });
}

void clip(log::OffsetSet& set, OffsetRange range) {
  set.remove({Offset{0}, range.begin});
  set.remove({range.end, Offset{std::numeric_limits<std::uint64_t>::max()}});
}

RunFinder::RunFinder(const log::OffsetSet& set, std::size_t finds)
    : set_(set), runs_(set), walks_(is_walk_faster(finds, set)) {
  found_ = runs_.next();
}

const std::optional<OffsetRange>& RunFinder::behind(Offset offset) {
  if (!walks_ && found_ && found_->end <= offset) found_ = set_.first_behind(offset);
  while (found_ && found_->end <= offset) found_ = runs_.next();
  return found_;
}

}  // namespace lightq::broker
