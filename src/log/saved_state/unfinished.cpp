/// The messages that a consumer group has not finished, as its cursor saves them. Layer: log.
#include "log/saved_state/unfinished.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "log/offsets/offset_set_builder.hpp"

namespace lightq::log {

std::size_t Unfinished::bytes() const {
  std::size_t bytes = messages.bytes();
  for (const auto& [due, part] : delayed) bytes += part.bytes();
  for (const OffsetSet& bit : delivery_bits) bytes += bit.bytes();
  return bytes + dead.bytes();
}

bool Unfinished::shares_all_with(const Unfinished& other) const {
  const auto shares = [](const OffsetSet& one, const OffsetSet& another) {
    return one.shares_all_with(another);
  };
  return next == other.next && messages.shares_all_with(other.messages) &&
         std::ranges::equal(delayed, other.delayed,
                            [&](const auto& one, const auto& another) {
                              return one.first == another.first && shares(one.second, another.second);
                            }) &&
         std::ranges::equal(delivery_bits, other.delivery_bits, shares) && dead == other.dead;
}

std::vector<OffsetRange> Unfinished::processed(Offset offset, std::size_t ranges_max) const {
  std::vector<OffsetRange> ranges;
  OffsetSet::Runs runs(messages);
  for (Offset from = offset; ranges.size() < ranges_max;) {
    const std::optional<OffsetRange> run = runs.next();
    const Offset end = run ? run->begin : next;
    if (from < end) ranges.push_back({from, end});
    if (!run) break;
    from = run->end;
  }
  return ranges;
}

bool Unfinished::cut_at(Offset end) {
  if (next <= end) return false;
  const OffsetRange behind{end, {std::numeric_limits<std::uint64_t>::max()}};
  next = end;
  messages.remove(behind);
  for (auto& [due, part] : delayed) part.remove(behind);
  std::erase_if(delayed, [](const auto& part) { return part.second.empty(); });
  for (OffsetSet& bit : delivery_bits) bit.remove(behind);
  while (!delivery_bits.empty() && delivery_bits.back().empty()) delivery_bits.pop_back();
  dead.cut_at(end);
  return true;
}

Unfinished unfinished_between(Offset offset, const std::vector<OffsetRange>& processed) {
  OffsetSetBuilder builder;
  Offset from = offset;
  for (const OffsetRange& range : processed) {
    builder.append({from, range.begin});
    from = range.end;
  }
  return {from, builder.finish()};
}

}  // namespace lightq::log
