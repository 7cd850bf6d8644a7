/// The reference model of a dead-letter topic.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "delivery/dead/dead_message.hpp"

namespace lightq::model {

/// A letter: one death of one message in one group.
struct ModelLetter {
  std::string group;
  std::uint64_t offset = 0;  ///< of the message in its topic
  std::uint64_t content = 0;
  std::string cause = {};
  bool is_wanted = false;     ///< a command gives it back, or has tried to
  bool is_returned = false;   ///< its message was given back to the group, or published anew
  bool is_published = false;  ///< anew
  bool is_settled = false;
  bool is_passed_over = false;  ///< the group's position was moved since: its message may wait there again
};

/// The letters by their offsets. A plain value.
using ModelLetters = std::deque<ModelLetter>;

/// A command that gives letters back. While it runs it may reach letters that have come after it.
struct GiveBackCommand {
  broker::DeadFilter filter;
  std::shared_ptr<bool> is_over = std::make_shared<bool>(false);

  [[nodiscard]] bool means(const ModelLetter& letter, std::uint64_t at) const {
    const char* const cause = filter.cause == broker::DeathCause::attempts ? "attempts" : "rejected";
    if (filter.cause && letter.cause != cause) return false;
    return filter.ranges.empty() ||
           (filter.ranges[0].begin <= Offset{at} && Offset{at} < filter.ranges[0].end);
  }
};

}  // namespace lightq::model
