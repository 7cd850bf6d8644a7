/// The knowledge of the users of a durable topic: their messages and verdicts, and which of them
/// is promised to survive.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <lightq/base/types.hpp>

namespace lightq::test {

/// The model with which a disk is compared. A plain value, cheap to copy.
struct DeliveryHistory {
  /// The state of a message in the group, as a bit.
  enum State : std::uint8_t {
    ready = 1,     ///< ready, or in flight: retention may drop it
    dead = 2,      ///< parked, or on its way to the dead-letter topic
    done = 4,      ///< acknowledged, or moved to the dead-letter topic
    retrying = 8,  ///< becomes ready later
  };
  /// Returns the states that a start may find for this one: a time passes while no process runs.
  static constexpr std::uint8_t alike(std::uint8_t states) {
    constexpr std::uint8_t waits = ready | retrying;
    return (states & waits) == 0 ? states : std::uint8_t(states | waits);
  }
  static constexpr std::int32_t unknown = -1;

  struct Message {
    static constexpr std::size_t dues_max = 4;
    std::uint32_t bytes = 0;
    bool is_delayed = false;
    bool is_stored = false;    ///< the call that stores it has returned
    bool is_promised = false;  ///< of a delayed one: it survives a power cut
    bool is_acknowledged = false;
    bool is_excused = false;  ///< a command finished it, or retention dropped it: nobody needs to receive it
    bool is_placed = false;   ///< it was seen in the log, at `offset`
    enum class Cancelled : std::uint8_t { no, perhaps, yes } cancelled = Cancelled::no;
    std::uint8_t letters = 0;  ///< seen in the dead-letter topic
    std::uint8_t returns = 0;  ///< letters that commands may have given back
    std::uint8_t dues = 0;     ///< how many of `due` are possible
    std::uint64_t number = 0;  ///< in the schedule
    Offset offset;
    std::array<std::int64_t, dues_max> due{};  ///< in microseconds since 1970; the last one is the newest

    [[nodiscard]] bool may_be_due_at(std::int64_t us) const {
      return std::find(due.begin(), due.begin() + dues, us) != due.begin() + dues;
    }
    /// Returns true if it is stored, and the consumer has never received it.
    [[nodiscard]] bool is_needed() const {
      return is_stored && cancelled == Cancelled::no && !is_acknowledged && !is_excused;
    }
    [[nodiscard]] std::int64_t earliest() const { return *std::min_element(due.begin(), due.begin() + dues); }
  };
  /// An offset of the topic's log.
  struct Place {
    std::int32_t message = unknown;
    std::uint8_t now = ready;            ///< the State at the last look
    std::uint8_t promised = ready;       ///< all states since the last promise of the group's state
    std::uint8_t since_request = ready;  ///< all states since the save that is under way was asked for
    std::int64_t ready_from = 0;  ///< the least `passed_us` at which a retrying one of `promised` is ready
    std::int64_t next_ready_from = 0;    ///< the same of `since_request`
    std::int64_t newest_ready_from = 0;  ///< the same of `now`
    bool is_acknowledged = false;        ///< since it was unfinished the last time
    bool is_final = false;               ///< and that is promised: it is never given back any more
    bool was_dropped = false;  ///< a process has seen the log drop it; after a power cut it may be back
    bool is_missing = false;   ///< neither the log nor a copy has it, which excuse_dropped() has judged
    bool is_gone = false;  ///< a start has found it dropped, as it may be: with a letter, or after its end

    /// Returns false if the log had dropped it before the model has seen it.
    [[nodiscard]] bool is_seen() const { return message != unknown || !is_gone; }
  };

  std::vector<Message> messages;      ///< by number
  std::vector<Place> places;          ///< by offset
  std::vector<std::int32_t> letters;  ///< by offset of the dead-letter topic: the message's number
  Offset first;                       ///< messages before it may have been dropped
  Offset durable;                     ///< messages before it were promised to survive a power cut
  Offset durable_from;                ///< messages before it were dropped before that promise
  Offset letters_durable;             ///< the same of the dead-letter topic
  bool save_is_due = false;           ///< a save was asked for, and not answered
  std::uint32_t give_backs = 0;       ///< commands that give letters back, and were not answered
  bool group_promised = false;        ///< the group survives a power cut
  std::int64_t passed_us = 0;         ///< the most time that any clock has measured so far

  /// A message is to be delivered again after `us`. A power cut may bring back an earlier time.
  void retry_after(Place& place, std::int64_t us) const {
    const std::int64_t from = place.newest_ready_from = passed_us + us;
    place.next_ready_from =
        (place.since_request & retrying) == 0 ? from : std::min(place.next_ready_from, from);
    place.ready_from = (place.promised & retrying) == 0 ? from : std::min(place.ready_from, from);
  }
  /// Returns true if a message may have been ready at a time since the last promise. One that retries becomes
  /// ready within a call, which may also drop it.
  [[nodiscard]] bool may_be_ready(const Place& place) const {
    return (place.promised & ready) != 0 ||
           ((place.promised & retrying) != 0 && place.ready_from <= passed_us);
  }

  [[nodiscard]] std::string text(std::int32_t number) const {
    return text_of(number, messages[static_cast<std::size_t>(number)].bytes);
  }
  static std::string text_of(std::int32_t number, std::size_t bytes) {
    const std::string mark = "m" + std::to_string(number) + "_";
    std::string text = mark;
    while (text.size() < bytes) text += mark;
    if (bytes > mark.size()) text.resize(bytes);
    return text;
  }
  /// Returns the number of the message with this text, or `unknown`.
  [[nodiscard]] std::int32_t number_of(std::string_view text) const;
  void ask_for_save() {
    save_is_due = true;
    for (Place& place : places) {
      place.since_request = place.now;
      place.next_ready_from = place.newest_ready_from;
    }
  }
  /// A command may give back letters that arrive while it works.
  void note_returns() {
    for (Message& message : messages) message.returns = std::max(message.returns, message.letters);
  }
  void saved(bool with_group) {
    save_is_due = false;
    group_promised = with_group;
    for (Place& place : places) {
      place.promised = place.since_request;
      place.ready_from = place.next_ready_from;
      place.is_final = place.is_acknowledged && place.promised == done;
    }
  }
};

inline std::int32_t DeliveryHistory::number_of(std::string_view text) const {
  if (text.empty() || text.front() != 'm') return unknown;
  std::int32_t number = 0;
  std::size_t at = 1;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9' && number < 100'000; ++at)
    number = number * 10 + (text[at] - '0');
  if (at == 1 || at == text.size() || text[at] != '_' || static_cast<std::size_t>(number) >= messages.size())
    return unknown;
  // The text repeats its mark.
  const std::size_t mark = at + 1;
  const std::size_t bytes = std::max<std::size_t>(messages[static_cast<std::size_t>(number)].bytes, mark);
  if (text.size() != bytes) return unknown;
  for (std::size_t i = mark; i < bytes; ++i) {
    if (text[i] != text[i - mark]) return unknown;
  }
  return number;
}

}  // namespace lightq::test
