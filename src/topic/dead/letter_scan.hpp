/// Reads the letters of a dead-letter topic. Layer: topic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <lightq/base/types.hpp>

#include "delivery/dead/dead_message.hpp"
#include "delivery/letters/dead_letter.hpp"
#include "topic/runtime/topic_runtime.hpp"

namespace lightq::broker {

/// A letter that is not settled.
struct FoundLetter {
  Offset offset;
  DeathAccount death;
  bool is_under_way = false;
  std::optional<DeadLetter> original;  ///< the message that died; nothing if it was not asked for
};

/// How much to read at most. One call reads a limited number of messages anyway.
struct ScanBounds {
  Offset from;             ///< the first offset
  std::size_t letters;     ///< at least 1
  bool originals = false;  ///< also makes the messages that died
};

/// The result of one call, which does about a millisecond's work.
struct LetterPiece {
  std::vector<FoundLetter> letters;  ///< by offset
  std::optional<Offset> next;        ///< call again from here; nothing: this was all
  bool is_pending = false;           ///< the messages at `next` cannot be read now
  bool is_reading = false;           ///< is_pending: the disk is reading them, so they can be read soon
};

/// Finds letters that are not settled. The filter's state `dead_waiting` means letters that are being given
/// back, and `parked` all others. Offsets, key and times of death are those of the letters.
/// Messages without the account of a death are no letters. In a durable topic only letters that survive a
/// power cut are found.
[[nodiscard]] LetterPiece scan_letters(TopicRuntime& topic, const DeadFilter& filter,
                                       const ScanBounds& bounds);

}  // namespace lightq::broker
