/// Letters on their way back to the group in which they died, and the answer. Layer: topic.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <lightq/base/types.hpp>

#include "delivery/letters/dead_letter.hpp"

namespace lightq::broker {

/// A letter on its way back.
struct ReturnedLetter {
  Offset letter;                  ///< in the dead-letter topic
  std::uint64_t incarnation = 0;  ///< of the source topic's log when the message died
  Offset message;                 ///< in that log
  DeadLetter original;            ///< the message that died
};

/// The letters of a run that go back to one group, in the order of their offsets.
struct ReturnParcel {
  TopicId letters;        ///< the dead-letter topic
  std::uint64_t run = 0;  ///< see LetterBook
  std::string group;
  std::vector<ReturnedLetter> returned;
};

/// The answer for a part of a parcel: the first letters are done, and durably so.
struct ReturnAnswer {
  /// Why the letter at `end` is not done.
  enum class Stop : std::uint8_t {
    none,        ///< the next one can be sent
    group_gone,  ///< the source topic has no such group
    topic_gone,  ///< there is no such topic
    impossible,  ///< the source topic can never store it
    later,       ///< the message cannot be read now, or is just moving
    failed,      ///< the source topic could not save or store it; `why` says more
  };
  Offset end;                    ///< letters of the parcel below it are done
  std::uint64_t given_back = 0;  ///< of these: to the group
  std::uint64_t published = 0;   ///< of these: published anew, because the log no longer has the message
  Stop stop = Stop::none;
  std::string why = {};
};

/// How many letters a command has given back, and why others wait still.
struct LetterCounts {
  std::uint64_t messages = 0;     ///< counted or given up by the command, given back or published anew
  std::uint64_t given_back = 0;   ///< of these: to the group in which they died
  std::uint64_t published = 0;    ///< of these: published anew to the source topic
  std::uint64_t group_gone = 0;   ///< wait: the group does not exist
  std::uint64_t topic_gone = 0;   ///< wait: the source topic does not exist
  std::uint64_t not_allowed = 0;  ///< wait: the asker may not manage the source topic
  std::uint64_t failed = 0;       ///< wait: the source topic could not take them
};

}  // namespace lightq::broker
