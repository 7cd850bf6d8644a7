/// Layer: delivery.
#include "broker/delivery/pull_group.hpp"

#include <algorithm>

namespace lightq::broker {

namespace {
constexpr std::size_t returned_walk_bytes = 256 * limits::KiB;
constexpr std::uint64_t returned_gap_max = 256;       // records
constexpr std::uint64_t redelivered_per_pump = 4096;  // messages
}  // namespace

void PullGroup::attach(Outlet& outlet) {
  outlets_.push_back(&outlet);
}

void PullGroup::detach(Outlet& outlet) {
  const auto found = std::find(outlets_.begin(), outlets_.end(), &outlet);
  if (found == outlets_.end()) return;
  outlets_.erase(found);
  turn_ = 0;
  const auto unsent = outlet.unsent();
  returned_.insert(returned_.end(), unsent.begin(), unsent.end());
  std::sort(returned_.begin(), returned_.end());
}

bool PullGroup::hand_over(Offset offset, ByteView payload) {
  const std::size_t count = outlets_.size();
  for (std::size_t tried = 0; tried < count; ++tried) {
    Outlet* const outlet = outlets_[turn_];
    turn_ = turn_ + 1 < count ? turn_ + 1 : 0;
    if (outlet->offer(offset, payload)) return true;
  }
  return false;
}

/// False if there is still something that came back: nothing newer is handed out before it.
bool PullGroup::pump_returned(log::Log& log, Handed& handed) {
  while (!returned_.empty()) {
    RecordWalk walk(returned_.front());
    const std::size_t waiting = returned_.size();
    bool refused = false;
    walk.walk(log, returned_walk_bytes, [&](Offset offset, ByteView payload) {
      give_up_returned(offset, walk.loss());
      if (returned_.empty()) return false;
      // On to the next one, unless a search is quicker than reading all that lies between.
      if (offset < returned_.front()) return distance(offset, returned_.front()) < returned_gap_max;
      handed.more = handed.redelivered >= redelivered_per_pump;
      refused = handed.more || !hand_over(offset, payload);
      if (refused) return false;
      returned_.pop_front();
      ++handed.redelivered;
      handed.bytes += payload.size();
      return true;
    });
    if (refused) return false;
    if (returned_.size() == waiting) give_up_returned(returned_.front() + 1, walk.loss());
  }
  return true;
}

/// Counts as lost what came back and lies before `offset`: the log has nothing there any more.
void PullGroup::give_up_returned(Offset offset, const WalkLoss& loss) {
  while (!returned_.empty() && returned_.front() < offset) {
    const bool is_damaged = returned_.front() < loss.damaged_end;
    ++(is_damaged ? returned_loss_.damaged : returned_loss_.trimmed);
    if (is_damaged) returned_loss_.damaged_end = returned_.front() + 1;
    returned_.pop_front();
  }
}

PullGroup::Handed PullGroup::pump(log::Log& log, std::size_t bytes_max) {
  Handed handed;
  if (outlets_.empty()) return handed;
  if (pump_returned(log, handed)) {
    handed.more = walk_.walk(log, bytes_max, [&](Offset offset, ByteView payload) {
      if (!hand_over(offset, payload)) return false;
      ++handed.messages;
      handed.bytes += payload.size();
      return true;
    });
  }
  for (Outlet* const outlet : outlets_) outlet->flush();
  return handed;
}

WalkLoss PullGroup::loss() const {
  WalkLoss loss = walk_.loss();
  loss.trimmed += returned_loss_.trimmed;
  loss.damaged += returned_loss_.damaged;
  loss.damaged_end = std::max(loss.damaged_end, returned_loss_.damaged_end);
  return loss;
}

std::uint64_t PullGroup::returned_in(Offset from, Offset to) const {
  const auto first = std::lower_bound(returned_.begin(), returned_.end(), from);
  const auto last = std::lower_bound(first, returned_.end(), to);
  return static_cast<std::uint64_t>(last - first);
}

Offset PullGroup::committed() const {
  Offset oldest = walk_.offset();
  if (!returned_.empty()) oldest = std::min(oldest, returned_.front());
  for (const Outlet* const outlet : outlets_) {
    if (const auto unsent = outlet->first_unsent()) oldest = std::min(oldest, *unsent);
  }
  return oldest;
}

void PullGroup::skip_to(Offset offset) {
  walk_.seek(offset);
  returned_.clear();
}

}  // namespace lightq::broker
