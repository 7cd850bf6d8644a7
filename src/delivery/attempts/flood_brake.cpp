/// Samples the sums of a group once a second. Layer: delivery.
#include "delivery/attempts/flood_brake.hpp"

#include <algorithm>

namespace lightq::broker {

void FloodBrake::note(SteadyTime now, std::uint64_t ended, std::uint64_t dead) {
  constexpr std::chrono::seconds between{1};
  if (samples_.empty()) {
    samples_.push_back({now, ended, dead});
  } else if (samples_.back().time + between <= now) {
    samples_.push_back(last_);  // these sums stayed until now
  }
  last_ = {now, ended, dead};
  const SteadyTime begin = now - window;
  const auto inside = std::ranges::find_if(samples_, [&](const Sample& each) { return begin < each.time; });
  // The last sample before the window has the sums at its beginning.
  if (inside - samples_.begin() > 1) samples_.erase(samples_.begin(), inside - 1);
}

FloodBrake::Recent FloodBrake::recent(SteadyTime now, std::uint64_t ended, std::uint64_t dead) const {
  if (samples_.empty()) return {};
  const SteadyTime begin = std::max(now, last_.time) - window;
  if (last_.time <= begin) return {ended - last_.ended, dead - last_.dead};
  Sample before = samples_.front();
  for (const Sample& each : samples_) {
    if (each.time <= begin) before = each;
  }
  return {ended - before.ended, dead - before.dead};
}

void FloodBrake::reset() {
  samples_.clear();
  if (last_.time != SteadyTime{}) samples_.push_back(last_);
}

}  // namespace lightq::broker
