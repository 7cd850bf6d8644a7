/// Plans which messages leave next. Layer: delayed.
#include "delayed/move_plan.hpp"

#include <algorithm>
#include <iterator>

namespace lightq::broker {

bool MovePlan::contains(DuePosition position) const {
  const auto behind = std::ranges::upper_bound(planned_, position, {}, &Planned::position);
  return behind != planned_.begin() && position <= std::prev(behind)->last();
}

void MovePlan::mend(std::vector<Planned>& taken_back) {
  if (!break_) return;
  // The break is never within an entry: that has all numbers between its first and its last one.
  cut(std::ranges::upper_bound(planned_, *break_, {}, &Planned::position), taken_back);
}

void MovePlan::clear(std::vector<Planned>& taken_back) {
  cut(planned_.begin(), taken_back);
}

void MovePlan::cut(std::deque<Planned>::iterator from, std::vector<Planned>& taken_back) {
  for (auto each = from; each != planned_.end(); ++each) messages_ -= each->count;
  taken_back.insert(taken_back.end(), from, planned_.end());
  planned_.erase(from, planned_.end());
  break_.reset();
}

void MovePlan::add(std::span<const WaitingRun> runs, std::uint64_t log_offset, Offset end) {
  for (const WaitingRun& run : runs) {
    planned_.push_back({next_sequence_, run.position(), log_offset, run.count});
    next_sequence_ += run.count;
    messages_ += run.count;
  }
  ends_.push_back({next_sequence_, end});
}

void MovePlan::drop_front(std::uint32_t messages) {
  Planned& first = planned_.front();
  messages_ -= messages;
  if (messages == first.count) {
    planned_.pop_front();
  } else {
    first.sequence += messages;
    first.position.number += messages;
    first.count -= messages;
  }
  if (planned_.empty()) break_.reset();
}

void MovePlan::durable_up_to(Offset durable) {
  while (!ends_.empty() && ends_.front().end <= durable) {
    durable_below_ = ends_.front().sequences_end;
    ends_.pop_front();
  }
}

}  // namespace lightq::broker
