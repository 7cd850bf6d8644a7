/// Delays replies for a while, and bounds how many are delayed. Layer: access.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

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
    held_.emplace(number, Held{source, std::move(answer)});
    auto& of_source = numbers_[source];
    of_source.insert(number);
    std::vector<Answer> early;
    if (of_source.size() > per_source_max_) early.push_back(*take(*of_source.begin()));
    if (held_.size() > answers_max_) early.push_back(*take(held_.begin()->first));
    return {number, std::move(early)};
  }
  /// Removes and returns the reply; nothing if it was taken before.
  std::optional<Answer> take(Number number) {
    auto held = held_.extract(number);
    if (held.empty()) return std::nullopt;
    const auto of_source = numbers_.find(held.mapped().source);
    of_source->second.erase(number);
    if (of_source->second.empty()) numbers_.erase(of_source);
    return std::move(held.mapped().answer);
  }
  [[nodiscard]] std::size_t size() const { return held_.size(); }

 private:
  struct Held {
    std::string source;
    Answer answer;
  };

  const std::size_t answers_max_;
  const std::size_t per_source_max_;
  Number last_ = 0;
  std::map<Number, Held> held_;                                // oldest first
  std::unordered_map<std::string, std::set<Number>> numbers_;  // by source
};

}  // namespace lightq::broker
