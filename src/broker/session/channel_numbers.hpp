/// Channels that something is to be done for. Layer: session.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace lightq::broker {

/// Numbers of channels, in the order in which they were added. Keeps its memory. One thread.
class ChannelNumbers {
 public:
  /// Nothing changes if it was the last one to be added.
  void add(std::uint32_t number) {
    if (numbers_.empty() || numbers_.back() != number) numbers_.push_back(number);
  }
  void clear() { numbers_.clear(); }
  /// Calls `use(number)` for each; those that are added meanwhile are left for the next time.
  template <typename Use>
  void take_each(Use&& use) {
    std::vector<std::uint32_t> taken = std::exchange(numbers_, std::move(spare_));
    for (const std::uint32_t number : taken) use(number);
    taken.clear();
    spare_ = std::move(taken);
  }

 private:
  std::vector<std::uint32_t> numbers_;
  std::vector<std::uint32_t> spare_;  // empty
};

}  // namespace lightq::broker
