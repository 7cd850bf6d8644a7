/// A list of the channels that need some work. Layer: session.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace lightq::broker {

/// Channel numbers in the order in which they were added. Keeps its memory when it is cleared. For one
/// thread.
class ChannelNumbers {
 public:
  /// Adds a number, unless it was also the last one added.
  void add(std::uint32_t number) {
    if (numbers_.empty() || numbers_.back() != number) numbers_.push_back(number);
  }
  void clear() { numbers_.clear(); }
  /// Calls `use(number)` for each number and removes it. Numbers added meanwhile stay for the next call.
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
