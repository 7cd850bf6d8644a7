/// The reference model of a topic's delayed messages.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <lightq/base/types.hpp>

#include "model/disagreement.hpp"

namespace lightq::model {

/// A message that waits, or has left for the topic's log.
struct ModelDelayed {
  std::uint64_t content = 0;
  std::vector<std::int64_t> dues;  ///< the last one counts; a power cut may restore earlier ones
  bool is_durable = false;
  bool may_be_planned = false;  ///< its due time cannot be changed any more, perhaps
  [[nodiscard]] std::int64_t due() const { return dues.back(); }
};

/// Delayed messages by number, in the order of their due times. A plain value.
class ModelSchedule {
 public:
  /// Messages are planned together that are due so soon.
  static constexpr std::int64_t plan_ahead_us = 60'000;

  void add(std::uint64_t number, std::uint64_t content, std::int64_t due) {
    waiting[number] = {content, {due}};
    order_.insert({due, number});
  }
  void set_due(std::uint64_t number, std::int64_t due) {
    ModelDelayed& message = waiting.at(number);
    order_.erase({message.due(), number});
    order_.insert({due, number});
    message.dues.push_back(due);
  }
  void cancel(std::uint64_t number, bool is_durable) {
    const auto found = waiting.find(number);
    order_.erase({found->second.due(), number});
    if (!is_durable) unsure[number] = found->second;
    waiting.erase(found);
  }
  /// Returns true if the content waits here.
  [[nodiscard]] std::optional<std::uint64_t> number_of(std::uint64_t content) const {
    for (const auto& [number, message] : waiting)
      if (message.content == content) return number;
    return std::nullopt;
  }
  /// Follows a message that is in the log now.
  void left(std::uint64_t content, std::uint64_t offset, Timestamp wall) {
    const auto first = order_.begin();
    demand(first != order_.end(), "a delayed message left, and none waits");
    const std::uint64_t number = first->second;
    ModelDelayed& message = waiting.at(number);
    const std::string name = "delayed message " + std::to_string(content) + ": ";
    demand(message.content == content,
           [&] { return name + "it left before " + std::to_string(message.content); });
    demand(first->first <= wall.us, [&] { return name + "it left early"; });
    moved[offset] = {number, message};
    order_.erase(first);
    waiting.erase(number);
  }
  /// Notes messages so close to their due time that they may be planned.
  void look_at(Timestamp wall) {
    for (const auto& [due, number] : order_) {
      if (due > wall.us + plan_ahead_us) break;
      waiting.at(number).may_be_planned = true;
    }
  }
  void note_durable(std::uint64_t end) {
    for (auto& [number, message] : waiting) {
      if (number < end) message.is_durable = true;
    }
  }
  [[nodiscard]] std::optional<std::int64_t> first_due() const {
    return order_.empty() ? std::nullopt : std::optional(order_.begin()->first);
  }
  /// Replaces the messages by those that a start has found.
  void replace(std::map<std::uint64_t, ModelDelayed> found) {
    waiting = std::move(found);
    order_.clear();
    for (const auto& [number, message] : waiting) order_.insert({message.due(), number});
    unsure.clear();
  }

  std::map<std::uint64_t, ModelDelayed> waiting;                          // by number
  std::map<std::uint64_t, std::pair<std::uint64_t, ModelDelayed>> moved;  // by offset in the log
  std::map<std::uint64_t, ModelDelayed> unsure;  // cancelled, and a power cut may restore them

 private:
  std::set<std::pair<std::int64_t, std::uint64_t>> order_;  // due time and number
};

}  // namespace lightq::model
