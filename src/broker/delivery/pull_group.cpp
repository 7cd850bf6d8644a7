/// Layer: delivery.
#include "broker/delivery/pull_group.hpp"

#include <algorithm>

namespace lightq::broker {

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

bool PullGroup::pump_returned(log::Log& log, Handed& handed) {
  while (!returned_.empty()) {
    RecordWalk one(returned_.front());
    bool refused = false;
    one.walk(log, 1, [&](Offset offset, ByteView payload) {
      if (offset != returned_.front()) return false;  // trimmed meanwhile
      refused = !hand_over(offset, payload);
      if (!refused) {
        ++handed.redelivered;
        handed.bytes += payload.size();
      }
      return !refused;
    });
    if (refused) return false;
    returned_.pop_front();
  }
  return true;
}

PullGroup::Handed PullGroup::pump(log::Log& log, std::size_t bytes_max) {
  Handed handed;
  if (outlets_.empty() || !pump_returned(log, handed)) return handed;
  handed.more = walk_.walk(log, bytes_max, [&](Offset offset, ByteView payload) {
    if (!hand_over(offset, payload)) return false;
    ++handed.messages;
    handed.bytes += payload.size();
    return true;
  });
  for (Outlet* const outlet : outlets_) outlet->flush();
  return handed;
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
