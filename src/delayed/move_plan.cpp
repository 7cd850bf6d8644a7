/// Plans which messages leave next. Layer: delayed.
#include "delayed/move_plan.hpp"

#include <algorithm>

namespace lightq::broker {

bool MovePlan::contains(DuePosition position) const {
  const auto found = std::ranges::lower_bound(planned_, position, {}, &Planned::position);
  return found != planned_.end() && found->position == position;
}

void MovePlan::mend() {
  if (!break_) return;
  const auto from = std::ranges::upper_bound(planned_, *break_, {}, &Planned::position);
  planned_.erase(from, planned_.end());
  break_.reset();
}

void MovePlan::add(std::span<const DuePosition> positions, std::uint64_t log_offset, Offset end) {
  for (const DuePosition position : positions) planned_.push_back({next_sequence_++, position, log_offset});
  ends_.push_back({next_sequence_, end});
}

void MovePlan::durable_up_to(Offset durable) {
  while (!ends_.empty() && ends_.front().end <= durable) {
    durable_below_ = ends_.front().sequences_end;
    ends_.pop_front();
  }
}

}  // namespace lightq::broker
