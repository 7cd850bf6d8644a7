/// Delays replies for a while, and bounds how many are delayed. Layer: access.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "admission/eviction_queue.hpp"

namespace lightq::broker {

/// A bounded set of delayed replies. One thread; no clock: the code that adds a reply takes it again when it
/// is due.
class DelayedReplies {
 public:
  using Number = std::uint64_t;
  using Answer = std::function<void()>;

  DelayedReplies(std::size_t answers_max, std::size_t per_source_max)
      : answers_max_(answers_max), per_source_max_(per_source_max) {}

  struct Added {
    Number number;
    /// The oldest replies, to be sent now because there is no space for more.
    std::vector<Answer> early;
  };
  Added add(const std::string& source, Answer answer) {
    const Number number = ++last_;
    held_.emplace(number, std::move(answer));
    queue_.put(number, source);
    std::vector<Answer> early;
    if (queue_.of(source) > per_source_max_) early.push_back(*take(*queue_.oldest_of(source)));
    if (queue_.size() > answers_max_) early.push_back(*take(*queue_.oldest()));
    return {number, std::move(early)};
  }
  /// Removes and returns the reply; nothing if it was taken before.
  std::optional<Answer> take(Number number) {
    auto held = held_.extract(number);
    if (held.empty()) return std::nullopt;
    queue_.remove(number);
    return std::move(held.mapped());
  }
  [[nodiscard]] std::size_t size() const { return held_.size(); }

 private:
  const std::size_t answers_max_;
  const std::size_t per_source_max_;
  Number last_ = 0;
  std::unordered_map<Number, Answer> held_;
  EvictionQueue<std::string, Number> queue_;  // by source
};

}  // namespace lightq::broker
