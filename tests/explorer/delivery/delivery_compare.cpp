/// Compares a durable topic with its history.
#include <algorithm>
#include <utility>

#include "explorer/delivery/delivery_client.hpp"

namespace lightq::test {

using Message = DeliveryHistory::Message;
using Place = DeliveryHistory::Place;
using State = DeliveryHistory::State;

/// The state that a start has found on the disk.
struct DeliveryClient::Found {
  static constexpr std::int32_t unreadable = -2;
  std::vector<std::int32_t> log;      // the message's number by offset; `unreadable`: there is none
  std::vector<std::int32_t> letters;  // the same of the dead-letter topic
  std::vector<std::uint8_t> copies;   // in the log and among carried copies, by message
  std::vector<std::uint8_t> waiting;  // in the schedule, by message
  std::vector<std::uint8_t> letter_copies;
  std::vector<std::int64_t> dues;
  Offset first;
};

namespace {

/// Calls `visit(offset, text)` for each message of a topic that can be read. Returns false if some cannot be
/// read now.
template <typename Visit>
bool read_all(broker::TopicStore& store, Offset from, Visit&& visit) {
  log::ReadPosition place{from};
  while (place.offset < store.next_offset()) {
    const auto read = store.read(place);
    if (read.outcome == log::ReadOutcome::damaged || read.outcome == log::ReadOutcome::trimmed) {
      if (read.next <= place.offset) return false;
      place = log::ReadPosition{read.next};
      continue;
    }
    if (read.outcome != log::ReadOutcome::batch) return false;
    Offset offset = read.batch.base_offset();
    for (auto record = read.batch.records(); !record.done(); record.next()) {
      if (place.offset <= offset) visit(offset, as_text(record.payload()));
      offset = offset + 1;
    }
    place.offset = read.batch.end_offset();
  }
  return true;
}

}  // namespace

void DeliveryClient::compare(LifeEnd end) {
  Found found;
  found.copies.assign(history.messages.size(), 0);
  found.waiting.assign(history.messages.size(), 0);
  found.letter_copies.assign(history.messages.size(), 0);
  found.dues.assign(history.messages.size(), 0);
  read_log(end, found);
  read_schedule(found);
  read_letters(end, found);
  if (!violation) compare_group(end, found);
  if (!violation) compare_messages(end, found);
  if (!violation) adopt(end, found);
}

void DeliveryClient::read_log(LifeEnd end, Found& found) {
  broker::TopicStore& store = life_.store();
  found.first = store.first_offset();
  found.log.assign(store.next_offset().value, Found::unreadable);
  const Offset certain = end == LifeEnd::kill ? Offset{history.places.size()} : history.durable;
  if (store.next_offset() < certain)
    return fail("the log ends at " + std::to_string(store.next_offset().value) + ", before " +
                std::to_string(certain.value));
  if (history.first < found.first && certain < found.first) return fail("the log begins too late");
  const bool read = read_all(store, Offset{0}, [&](Offset offset, std::string_view text) {
    const std::int32_t number = history.number_of(text);
    if (number == DeliveryHistory::unknown)
      return fail("the message at offset " + std::to_string(offset.value) + " was never published");
    found.log[offset.value] = number;
    const auto index = static_cast<std::size_t>(number);
    if (found.copies[index] == 0) {
      found.copies[index] = 1;
    } else if (!is_back_beside_its_letter(number, found)) {
      return fail(name(number) + " is in the log twice");
    }
    const Message& message = history.messages[index];
    // A message that was dropped before the model saw it may be back after a power cut.
    const bool is_known = offset.value < history.places.size() && history.places[offset.value].is_seen();
    if (is_known && history.places[offset.value].message != number &&
        (offset < certain || !message.is_delayed))
      return fail(name(number) + " is at offset " + std::to_string(offset.value) + ", which is that of " +
                  name(history.places[offset.value].message));
    if (message.cancelled == Message::Cancelled::yes && !message.is_placed)
      return fail(name(number) + " was cancelled, and is in the log");
    // The clock may have been set back since.
    if (message.is_delayed && !message.is_placed && now.us < message.earliest())
      return fail(name(number) + " is in the log early");
  });
  if (!read) fail("the log cannot be read");
  const Offset from = end == LifeEnd::kill ? history.first : history.durable_from;
  for (std::size_t i = std::max(found.first, from).value; i < certain.value; ++i) {
    if (found.log[i] == Found::unreadable && history.places[i].message != DeliveryHistory::unknown)
      return fail(name(history.places[i].message) + " at offset " + std::to_string(i) + " is lost");
  }
}

/// Returns true if the copy that was found first is one that the log had dropped before a letter of the
/// message was published anew. Until the drop is on disk, a power cut may bring the file back. The group does
/// not deliver that copy: it has finished it, or moves it to the dead-letter topic, where the letter is
/// already.
bool DeliveryClient::is_back_beside_its_letter(std::int32_t number, const Found& found) {
  const auto earlier = static_cast<std::size_t>(std::ranges::find(found.log, number) - found.log.begin());
  return earlier < history.places.size() && history.places[earlier].was_dropped &&
         history.messages[static_cast<std::size_t>(number)].returns != 0 &&
         (state_at({earlier}) & (State::done | State::dead)) != 0;
}

void DeliveryClient::read_schedule(Found& found) {
  broker::TopicSchedule& schedule = life_.source->schedule();
  if (!schedule.is_made()) return;
  const auto list = schedule.list({}, {}, history.messages.size() + 1);
  if (!list) return fail("the schedule cannot be read: " + list.error().text());
  for (const auto& waiting : list->messages) {
    const std::int32_t number = history.number_of(as_text(waiting.payload()));
    if (number == DeliveryHistory::unknown) return fail("an unknown message waits in the schedule");
    const auto index = static_cast<std::size_t>(number);
    if (found.waiting[index]++ != 0) return fail(name(number) + " waits twice");
    const Message& message = history.messages[index];
    if (!message.may_be_due_at(waiting.due.us))
      return fail(name(number) + " is due at a time that it never had");
    if (message.cancelled == Message::Cancelled::yes) return fail(name(number) + " was cancelled, and waits");
    if (waiting.number != message.number) return fail(name(number) + " has another number");
    found.dues[index] = waiting.due.us;
  }
}

void DeliveryClient::read_letters(LifeEnd end, Found& found) {
  if (life_.letters == nullptr) return;
  broker::TopicStore& store = BrokerLife::store_of(*life_.letters);
  found.letters.assign(store.next_offset().value, Found::unreadable);
  const Offset certain = end == LifeEnd::kill ? Offset{history.letters.size()} : history.letters_durable;
  if (store.next_offset() < certain) return fail("the dead-letter topic ends too early");
  const bool read = read_all(store, Offset{0}, [&](Offset offset, std::string_view text) {
    const std::int32_t number = history.number_of(text);
    if (number == DeliveryHistory::unknown) return fail("a letter is no message of the topic");
    const auto index = static_cast<std::size_t>(number);
    if (offset < certain && history.letters[offset.value] != number)
      return fail("the letter at offset " + std::to_string(offset.value) + " has changed");
    found.letters[offset.value] = number;
    if (++found.letter_copies[index] > history.messages[index].returns + 1)
      return fail(name(number) + " has died once, and has two letters");
  });
  if (!read) return fail("the dead-letter topic cannot be read");
  for (std::size_t i = 0; i < certain.value; ++i) {
    if (found.letters[i] == Found::unreadable && history.letters[i] >= 0)
      return fail("the letter at offset " + std::to_string(i) + " is lost");
  }
}

std::uint8_t DeliveryClient::state_at(Offset offset) {
  broker::ConsumerGroup* const group = life_.group();
  if (group == nullptr) return State::ready;
  const broker::GroupMessages& messages = group->messages();
  if (!broker::is_unfinished(messages, offset)) return State::done;
  if (!broker::any_waiting(messages)) return State::ready;
  const auto run = broker::waiting_behind(messages, offset);
  if (!run || offset < run->begin) return State::ready;
  if (!messages.redelivery().has_dead()) return State::retrying;
  const auto& dead = *messages.redelivery().dead();
  return dead.parked().contains(offset) || dead.waiting().contains(offset) ? State::dead : State::retrying;
}

void DeliveryClient::compare_group(LifeEnd /*end*/, Found& found) {
  broker::ConsumerGroup* const group = life_.group();
  if (group == nullptr) {
    if (history.group_promised) fail("the group is lost");
    return;
  }
  const std::size_t known = std::min(found.log.size(), history.places.size());
  for (std::size_t i = 0; i < known; ++i) {
    const Place& place = history.places[i];
    if (place.message < 0) continue;
    const std::uint8_t state = state_at({i});
    const bool is_same = found.log[i] == place.message;
    const bool is_dropped = Offset{i} < found.first && !is_same;
    // An offset that the log has given to another message.
    if (!is_same && !is_dropped) continue;
    if ((DeliveryHistory::alike(place.promised) & state) == 0)
      return fail(name(place.message) + " at offset " + std::to_string(i) + " has the state " +
                  std::to_string(state) + " in the group, but had only " + std::to_string(place.promised));
    const auto index = static_cast<std::size_t>(place.message);
    const Message& message = history.messages[index];
    constexpr std::uint8_t may_be_dropped = State::done | State::ready;
    if (is_dropped && state != State::done && !message.is_excused && !place.is_gone &&
        (place.promised & may_be_dropped) == 0)
      return fail(name(place.message) + " at offset " + std::to_string(i) + " was dropped without a copy");
    if (state == State::done && !message.is_acknowledged && !message.is_excused &&
        found.letter_copies[index] == 0)
      return fail(name(place.message) + " at offset " + std::to_string(i) +
                  " is finished, but nobody has acknowledged it, and it has no letter");
  }
}

void DeliveryClient::compare_messages(LifeEnd end, const Found& found) {
  for (std::size_t i = 0; i < history.messages.size(); ++i) {
    const Message& message = history.messages[i];
    const auto number = static_cast<std::int32_t>(i);
    if (found.copies[i] + found.waiting[i] > 1) return fail(name(number) + " waits, and is in the log");
    if (!message.is_delayed || !message.is_stored) continue;
    const bool must_be = end == LifeEnd::kill || message.is_promised;
    if (!must_be || message.cancelled != Message::Cancelled::no) continue;
    const bool was_dropped = message.is_placed && message.offset < found.first;
    // A letter that was published anew comes again until the command knows that it is durable.
    const bool comes_again = message.returns != 0 && found.letter_copies[i] != 0;
    if (found.copies[i] + found.waiting[i] == 0 && !was_dropped && !comes_again)
      return fail(name(number) + " is lost");
  }
}

/// The history continues with the found state.
void DeliveryClient::adopt(LifeEnd end, const Found& found) {
  const bool cut = end == LifeEnd::power_cut;
  history.first = found.first;
  history.save_is_due = false;
  if (life_.store().durable_offset().value != found.log.size()) fail("what was found is not durable");
  history.letters = found.letters;
  if (cut && life_.group() == nullptr) history.group_promised = false;
  history.places.resize(std::min(history.places.size(), found.log.size()));
  for (std::size_t i = 0; i < found.log.size(); ++i) {
    const bool is_new = history.places.size() <= i;
    if (is_new) history.places.emplace_back();
    Place& place = history.places[i];
    const bool is_readable = found.log[i] != Found::unreadable;
    const bool is_other = is_readable && place.message != found.log[i];
    if (is_readable) place.message = found.log[i];
    if (!is_readable && (is_new || found.first.value <= i)) place.message = DeliveryHistory::unknown;
    // The comparison has permitted it.
    place.is_gone = !is_readable && i < found.first.value;
    place.now = state_at({i});
    place.promised = cut || is_new || is_other ? place.now : std::uint8_t(place.promised | place.now);
    place.since_request = place.now;
    if (is_other || found.first.value <= i) place.is_missing = false;
    place.next_ready_from = place.newest_ready_from = place.ready_from;
    // A message that was finished by its letter may have been given back and acknowledged, and both are lost.
    if (is_other || place.now != State::done || !place.is_final)
      place.is_acknowledged = place.is_final = false;
  }
  for (std::size_t i = 0; i < history.messages.size(); ++i) {
    Message& message = history.messages[i];
    message.letters = found.letter_copies[i];
    const bool is_there = found.copies[i] + found.waiting[i] != 0;
    const bool was_dropped = message.is_placed && message.offset < found.first;
    if (!is_there && !was_dropped) {
      message.is_stored = message.is_placed = false;
      continue;
    }
    message.is_stored = true;
    if (found.waiting[i] == 0) continue;
    message.is_placed = false;
    if (!cut) continue;
    message.is_promised = true;
    message.cancelled = Message::Cancelled::no;
    message.due[0] = found.dues[i];
    message.dues = 1;
  }
  for (std::size_t i = 0; i < found.log.size(); ++i) {
    if (found.log[i] < 0) continue;
    Message& message = history.messages[static_cast<std::size_t>(found.log[i])];
    message.is_placed = true;
    message.offset = {i};
  }
  if (history.give_backs != 0) history.note_returns();
  history.give_backs = 0;
  excuse_dropped();
  note_durable();
  if (life_.letters != nullptr)
    history.letters_durable = BrokerLife::store_of(*life_.letters).durable_offset();
}

// --- While it runs ---

void DeliveryClient::note_in_call() {
  if (!life_.is_open()) return;
  history.first = std::max(history.first, life_.store().first_offset());
  for (std::size_t i = 0; i < history.places.size(); ++i) {
    const std::uint8_t state = state_at({i});
    history.places[i].promised |= state;
    history.places[i].since_request |= state;
    if (i < history.first.value) history.places[i].was_dropped = true;
  }
}

void DeliveryClient::look() {
  if (!life_.is_open() || violation) return;
  note_in_call();
  look_at_log();
  look_at_letters();
  look_at_group();
  look_at_schedule();
}

void DeliveryClient::note_durable() {
  broker::TopicStore& store = life_.store();
  if (store.durable_offset() < history.durable) return;
  history.durable = store.durable_offset();
  history.durable_from = store.first_offset();
}

void DeliveryClient::look_at_log() {
  broker::TopicStore& store = life_.store();
  const Offset first = store.first_offset();
  while (history.places.size() < store.next_offset().value && history.places.size() < first.value)
    history.places.emplace_back().is_gone = true;
  if (history.places.size() < store.next_offset().value) {
    const Offset from{history.places.size()};
    const bool read = read_all(store, from, [&](Offset offset, std::string_view text) {
      const std::int32_t number = history.number_of(text);
      if (number == DeliveryHistory::unknown) return fail("an unknown message is in the log");
      history.places.resize(offset.value + 1);
      history.places[offset.value].message = number;
      Message& message = history.messages[static_cast<std::size_t>(number)];
      if (message.is_placed && message.returns == 0 && store.first_offset() <= message.offset)
        return fail(name(number) + " is appended twice");
      if (message.is_delayed && life_.wall().us < message.earliest())
        return fail(name(number) + " leaves early");
      if (message.cancelled == Message::Cancelled::yes)
        return fail(name(number) + " leaves although it was cancelled");
      message.is_placed = true;
      message.offset = offset;
    });
    if (!read && !calls_fail) fail("the log cannot be read while it is used");
  }
  note_durable();
}

/// Retention drops messages that are ready, and those that are there before the group. Only the look that
/// first misses a message judges that: it may be ready later, but nobody can receive it.
void DeliveryClient::excuse_dropped() {
  const auto* const carried = life_.store().carried();
  const bool is_alone = life_.group() == nullptr;
  for (std::size_t i = 0; i < std::min<std::size_t>(history.first.value, history.places.size()); ++i) {
    Place& place = history.places[i];
    if (place.message < 0) continue;
    Message& message = history.messages[static_cast<std::size_t>(place.message)];
    if (message.is_excused || message.offset != Offset{i}) continue;
    if (is_alone) place.promised = place.since_request = State::ready | State::done;
    const bool has_copy = carried != nullptr && carried->offsets().contains({i});
    if (std::exchange(place.is_missing, !has_copy) || has_copy) continue;
    message.is_excused = history.may_be_ready(place);
  }
}

void DeliveryClient::look_at_group() {
  broker::ConsumerGroup* const group = life_.group();
  excuse_dropped();
  if (group == nullptr) return;
  std::uint64_t unfinished = 0;
  for (std::size_t i = 0; i < history.places.size(); ++i) {
    Place& place = history.places[i];
    const std::uint8_t state = state_at({i});
    if (state != State::done) ++unfinished;
    if (place.message >= 0 && place.now == State::done && state != State::done) {
      const Message& message = history.messages[static_cast<std::size_t>(place.message)];
      if (place.is_final) return fail(name(place.message) + " is given back twice");
      if (message.returns == 0)
        return fail(name(place.message) + " was finished, and becomes unfinished again");
    }
    if (state != State::done) place.is_acknowledged = place.is_final = false;
    place.now = state;
    place.promised |= state;
    place.since_request |= state;
  }
  const auto& messages = group->messages();
  const std::uint64_t states = messages.ready(life_.store().first_offset(), life_.store().next_offset()) +
                               messages.in_flight() + messages.retrying() + messages.parked() +
                               messages.dead_waiting();
  // Messages that were dropped count until the next dispatch. If a call fails, the model sees a part of the
  // log.
  const bool sees_all = history.places.size() == life_.store().next_offset().value;
  if (sees_all && life_.store().first_offset() == Offset{0} && states != unfinished)
    fail("the states of the group have " + std::to_string(states) + " messages, but " +
         std::to_string(unfinished) + " are pending");
}

void DeliveryClient::look_at_schedule() {
  broker::TopicSchedule& schedule = life_.source->schedule();
  if (!schedule.is_made()) return;
  const auto target = schedule.target();
  if (!target) return;
  const Offset durable = (*target)->ends().durable;
  for (Message& message : history.messages) {
    if (message.is_delayed && message.is_stored && message.number < durable.value) message.is_promised = true;
  }
}

void DeliveryClient::look_at_letters() {
  if (life_.letters == nullptr) return;
  broker::TopicStore& store = BrokerLife::store_of(*life_.letters);
  if (history.letters.size() < store.next_offset().value) {
    const Offset from{history.letters.size()};
    history.letters.resize(store.next_offset().value, DeliveryHistory::unknown);
    read_all(store, from, [&](Offset offset, std::string_view text) {
      const std::int32_t number = history.number_of(text);
      if (number == DeliveryHistory::unknown) return fail("a letter is no message of the topic");
      history.letters[offset.value] = number;
      Message& message = history.messages[static_cast<std::size_t>(number)];
      if (++message.letters > message.returns + 1)
        fail(name(number) + " has died once, and gets two letters");
    });
  }
  history.letters_durable = std::max(history.letters_durable, store.durable_offset());
  if (history.give_backs != 0) history.note_returns();
}

}  // namespace lightq::test
