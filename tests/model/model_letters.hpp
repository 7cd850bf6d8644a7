/// The reference model of a dead-letter topic.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

namespace lightq::model {

/// A letter: one death of one message in one group.
struct ModelLetter {
  std::string group;
  std::uint64_t offset = 0;  ///< of the message in its topic
  std::uint64_t content = 0;
  std::string cause = {};
  bool is_wanted = false;    ///< a command gives it back, or has tried to
  bool is_returned = false;  ///< its message was given back to the group, or published anew
  bool is_settled = false;
  bool is_passed_over = false;  ///< the group's position was moved since: its message may wait there again
};

/// The letters by their offsets. A plain value.
using ModelLetters = std::deque<ModelLetter>;

}  // namespace lightq::model
