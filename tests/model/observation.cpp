/// Follows the acts of the broker.
#include <algorithm>
#include <charconv>
#include <utility>

#include "model/world.hpp"

namespace lightq::model {

using namespace broker;
using Dead = GroupMessage::Dead;

World::World(test::Random& random, const BrokerUnderTest::Catalogue& catalogue)
    : random_(random), broker_(catalogue) {
  broker_.settled = [this] { observe(); };
  broker_.turned = [this] {
    if (!is_over_ && !broker_.is_dead()) observe_log();
  };
  // Many letters may be given back or published anew in one turn, and drop each other.
  broker_.dropping = [this] {
    if (is_over_ || broker_.is_dead()) return;
    observe_log();
    if (!broker_.journal().empty()) observe_journal();
    observe_returns();
  };
}

ModelGroup& World::add_group(const std::string& name, std::uint64_t next) {
  auto& group = groups_[name];
  group = std::make_unique<ModelGroup>(
      name, next,
      ModelGroup::Parts{
          .now = [this] { return broker_.now(); },
          .ticked_ms = [this] { return broker_.ticked_ms(); },
          .number_at = [this](std::uint64_t offset) { return log_.at(offset); },
          .has_expired = [this](std::uint64_t offset) { return has_expired(offset); },
          .may_have_expired = [this](std::uint64_t offset) { return may_have_expired(offset); },
          .was_given_back = [this, name](std::uint64_t offset) { return was_given_back(name, offset); },
          .is_dropped = [this](std::uint64_t offset) { return is_dropped(offset); },
          .keeps_waiting = [this] { return keeps_waiting(); },
          .is_lost = [this, name](std::uint64_t offset) { return is_lost(name, offset); },
          .count = [this](const char* what, std::uint64_t times) { tally_[what] += times; }});
  const auto known = broker_.catalogue().groups.find(name);
  if (known != broker_.catalogue().groups.end()) group->settings = known->second.settings;
  return *group;
}

void World::note_told(const Told& told, const std::string& group) {
  if (told.ranges.empty()) return;
  std::string text = "group " + group + ", consumer " + std::to_string(told.client);
  if (told.what == Told::What::delivered)
    text += " gets delivery " + std::to_string(told.delivery) + " of";
  else
    text += told.what == Told::What::late ? " is late for" : " loses";
  for (const OffsetRange& range : told.ranges)
    text += " [" + std::to_string(range.begin.value) + ", " + std::to_string(range.end.value) + ")";
  note(text);
}

void World::observe() {
  if (is_over_) return;
  observe_log();
  if (is_over_) return;
  observe_journal();
  observe_subscribers();
  for (auto& [name, group] : groups_) {
    group->settle_pulled();
    ConsumerGroup* const found = group->is_saved ? nullptr : real(*group);
    if (found != nullptr && !group->pullers.empty())
      group->is_saved = broker_.plain().topic.groups().is_saved(*found);
  }
  std::erase_if(groups_, [&](const auto& each) {
    const bool is_gone = broker_.is_dead() && !each.second->is_saved && real(*each.second) == nullptr;
    if (is_gone) half_made_.insert({each.first, each.second->start});
    return is_gone;
  });
  observe_returns();
  observe_expired();
  observe_letters();
  if (is_over_) return;
  explain_appended();
  std::erase_if(give_backs_, [](const GiveBackCommand& each) { return *each.is_over; });
  observe_outboxes();
  observe_drops();
  observe_schedule();
  observe_recurring();
  if (keeps_changes_) return;
  for (auto& [name, group] : groups_) group->forget_changes(oldest_unsaved_ms());
}

/// Follows the deliveries and revocations that consumers have seen, in their order.
void World::observe_journal() {
  for (auto& [name, group] : groups_) group->take_overdue();
  Journal& journal = broker_.journal();
  while (!journal.empty()) {
    const Told told = std::move(journal.front());
    journal.pop_front();
    if (told.what == Told::What::pulled) {
      observe_pulled(told);
      continue;
    }
    for (auto& [name, group] : groups_) {
      ModelMember* const member = group->member_of(told.client);
      if (member == nullptr) continue;
      if (told.what == Told::What::admitted) {
        member->is_admitted = true;
        group->is_saved = true;
        member->timeout_ms = told.timeout_ms;
        if (member->asked_timeout_ms != 0)
          demand(member->asked_timeout_ms == told.timeout_ms, "a consumer got another timeout");
      }
      if (told.what == Told::What::ended) {
        demand(broker_.is_dead() && !member->is_admitted, "a consumer was ended");
        group->members.erase(told.client);  // its new group cannot be saved
        break;
      }
      note_told(told, name);
      group->told(told);
      break;
    }
  }
}

void World::observe_pulled(const Told& told) {
  for (auto& [name, group] : groups_) {
    if (!group->pullers.contains(told.client)) continue;
    note("plain consumer " + std::to_string(told.client) + " gets " +
         std::to_string(told.ranges.front().begin.value));
    return group->told(told);
  }
  for (auto& [endpoint, subscriber] : subscribers_) {
    if (subscriber.sink != nullptr && subscriber.sink->number == told.client)
      return subscriber_got(endpoint, told);
  }
}

bool World::is_dropped(std::uint64_t offset) {
  TopicStore& store = broker_.orders_store();
  if (store.first_offset() <= Offset{offset}) return false;
  return store.carried() == nullptr || !store.carried()->offsets().contains({offset});
}

bool World::is_lost(const std::string& group, std::uint64_t offset) {
  if (!may_drop() || !is_dropped(offset)) return false;
  const ConsumerGroup* const found = real(*groups_.at(group));
  const DeadMessages* const dead = found == nullptr ? nullptr : found->messages().redelivery().dead();
  if (dead != nullptr && dead->messages_in({{offset}, {offset + 1}}) != 0) return false;
  return !has_new_letter(group, offset);
}

/// Looks at the letters that the model has not seen.
bool World::has_new_letter(const std::string& group, std::uint64_t offset) {
  TopicStore& store = broker_.letters_store();
  log::ReadPosition place{Offset{letters_.size()}};
  while (place.offset < store.next_offset()) {
    const auto read = store.read(place);
    if (read.outcome != log::ReadOutcome::batch) return false;
    for (auto record = read.batch.records(); !record.done(); record.next()) {
      bool is_of_group = false, is_of_message = false;
      for (const Header each : record.attributes().headers()) {
        is_of_group |= each.name == "lightq-dead-group" && each.value == group;
        is_of_message |= each.name == "lightq-dead-offset" && each.value == std::to_string(offset);
      }
      if (is_of_group && is_of_message) return true;
    }
    place = log::ReadPosition{read.batch.end_offset()};
  }
  return false;
}

std::uint64_t World::lost_ahead(const ModelGroup& group) {
  const ConsumerGroup* const found = real(group);
  if (found == nullptr || !may_drop()) return 0;
  std::uint64_t lost = 0;
  for (std::uint64_t at = found->next().value; at < broker_.orders_store().first_offset().value; ++at)
    lost += is_dropped(at) ? 1 : 0;
  return lost;
}

void World::check_ages(std::uint64_t first) {
  const protocol::TopicSettings& settings = broker_.catalogue().orders;
  const auto retention_us = static_cast<std::int64_t>(settings.retention_ms) * 1000;
  for (; aged_ < first && retention_us != 0; ++aged_) {
    const bool is_old = dated_us_[aged_] + retention_us <= broker_.wall().us;
    const bool is_needed = is_dropped(aged_) && std::ranges::any_of(groups_, [&](const auto& each) {
                             return each.second->open.contains(aged_);
                           });
    demand(is_old || !is_needed,
           [&] { return "message " + std::to_string(aged_) + " was dropped too young"; });
    ++tally_[is_old ? "messages dropped by their age" : "messages dropped that were done"];
  }
  aged_ = first;
}

/// Groups lose messages only if the topic drops the oldest, or by retention.
void World::observe_drops() {
  const std::uint64_t first = broker_.orders_store().first_offset().value;
  check_ages(first);
  for (auto& [name, group] : groups_) {
    const ConsumerGroup* const found = real(*group);
    // The group passes those that are gone when it looks for the next message.
    for (std::uint64_t at = group->next; found != nullptr && at < found->next().value && may_drop(); ++at) {
      demand(is_dropped(at) || !group->open.contains(at),
             [&] { return "group " + name + ", message " + std::to_string(at) + " is passed"; });
      group->next = at + 1;
    }
    if (group->open.empty() || first <= group->open.begin()->first) continue;
    const std::uint64_t before = group->lost;
    group->lose_dropped(first, under_way_of(*group));
    demand(group->lost == before || may_drop(),
           [&] { return "group " + name + ": the log dropped messages"; });
  }
}

void World::append(std::uint64_t content) {
  for (auto& [name, group] : groups_) group->appended(log_.size());
  if (Content::ttl_from <= next_content_) alive_.push_back(log_.size());
  log_.push_back(content);
  appended_us_.push_back(broker_.wall().us);
  dated_us_.push_back(broker_.wall().us);
}

/// A message that the test has not published itself was delayed, or is a letter that is published anew.
void World::appended(std::uint64_t content) {
  const std::uint64_t offset = log_.size();
  append(content);
  if (schedule_.number_of(content)) {
    schedule_.left(content, offset, broker_.wall());
    ++tally_["delayed messages in the log"];
    note("delayed message " + std::to_string(content) + " is in the log at " + std::to_string(offset));
    return;
  }
  if (is_letter_anew(content, offset)) return;
  const Content made{content};
  const auto schedule = recurring_.find("s" + std::to_string(made.schedule() % 2));
  const bool is_new = made.is_firing() && made.base() == content && schedule != recurring_.end() &&
                      schedule->second.number == made.schedule();
  if (is_new) {
    schedule->second.fired(made, broker_.wall().us);
    ++tally_["recurring messages"];
    note(made.id() + " is in the log at " + std::to_string(offset));
    return;
  }
  // A command may reach a letter that came in the same turn. The model has not seen that letter yet.
  if (!give_backs_.empty()) return unexplained_.push_back({content, offset});
  demand(false, [&] { return "message " + std::to_string(content) + " was doubled"; });
}

/// Notes that a letter is published anew, if this is the payload of one that may be.
bool World::is_letter_anew(std::uint64_t content, std::uint64_t offset) {
  const auto letter = std::ranges::find_if(letters_, [&](const ModelLetter& each) {
    return each.is_wanted && !each.is_returned && Content{each.content}.without_ttl().number == content;
  });
  if (letter == letters_.end()) return false;
  letter->is_returned = letter->is_published = true;
  ++tally_["letters published anew"];
  note("letter of " + std::to_string(content) + " is published anew at " + std::to_string(offset));
  return true;
}

/// Finds the letters of messages that came before their letters were seen.
void World::explain_appended() {
  for (const auto& [content, offset] : std::exchange(unexplained_, {}))
    demand(is_letter_anew(content, offset),
           [&, content = content] { return "message " + std::to_string(content) + " was doubled"; });
}

/// Ends the run if the disk of an ended process cannot be read any more.
bool World::is_cut_off(log::ReadOutcome outcome) {
  is_over_ = is_over_ || (broker_.is_dead() && outcome == log::ReadOutcome::unavailable);
  return is_over_;
}

/// Returns the number of a message of which only the payload is known: the test has not published it itself.
std::optional<std::uint64_t> World::content_of(const std::string& payload) const {
  for (const auto& [name, schedule] : recurring_) {
    const auto newest = schedule.last_within(schedule.done_us(schedule.started_least_us), broker_.wall().us);
    const Content content = Content::firing(schedule.number, schedule.version, newest.value_or(0));
    if (newest && content.payload() == payload) return content.number;
  }
  for (const ModelLetter& letter : letters_) {
    const Content content = Content{letter.content}.without_ttl();
    if (letter.is_wanted && !letter.is_returned && content.payload() == payload) return content.number;
  }
  return Content::number_in(payload);
}

void World::observe_log() {
  TopicStore& store = broker_.orders_store();
  while (log_.size() < store.next_offset().value) {
    const std::uint64_t from = log_.size();
    log::ReadPosition place{Offset{from}};
    const auto read = store.read(place);
    if (read.outcome == log::ReadOutcome::batch) {
      Offset at = read.batch.base_offset();
      for (auto record = read.batch.records(); !record.done(); record.next(), at = at + 1) {
        if (at < Offset{from}) continue;
        const auto content = Content::number_in(record.attributes(), record.payload());
        demand(content.has_value(), "an unknown message is in the log");
        appended(*content);
      }
      continue;
    }
    if (is_cut_off(read.outcome)) return;
    // It is gone already: an automatic consumer had it.
    const Journal& journal = broker_.journal();
    std::optional<std::uint64_t> content;
    for (const Told& told : journal) {
      const bool has_any = told.what == Told::What::delivered || told.what == Told::What::pulled;
      if (!has_any || Offset{from} < told.ranges.front().begin || told.ranges.front().end <= Offset{from})
        continue;
      content = told.what == Told::What::pulled ? content_of(told.text)
                                                : told.numbers[from - told.ranges.front().begin.value];
    }
    demand(content.has_value(), "a message in the log cannot be read");
    appended(*content);
  }
}

namespace {
std::uint64_t number_of(std::string_view text) {
  std::uint64_t number = UINT64_MAX;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}
}  // namespace

void World::observe_letters() {
  TopicStore& store = broker_.letters_store();
  while (letters_.size() < store.next_offset().value) {
    log::ReadPosition place{Offset{letters_.size()}};
    const auto read = store.read(place);
    if (is_cut_off(read.outcome)) return;
    demand(read.outcome == log::ReadOutcome::batch, "a letter cannot be read");
    Offset at = read.batch.base_offset();
    for (auto record = read.batch.records(); !record.done(); record.next(), at = at + 1) {
      if (at.value < letters_.size()) continue;
      std::map<std::string, std::string> headers;
      for (const Header each : record.attributes().headers())
        headers[std::string(each.name)] = std::string(each.value);
      ModelLetter letter;
      letter.group = headers["lightq-dead-group"];
      letter.cause = headers["lightq-dead-cause"];
      letter.offset = number_of(headers["lightq-dead-offset"]);
      const auto content = Content::number_in(record.attributes(), record.payload());
      demand(content.has_value(), "a letter has an unknown payload");
      letter.content = *content;
      const std::string name =
          "letter of message " + std::to_string(letter.offset) + " of group " + letter.group + ": ";
      demand(headers["lightq-dead-topic"] == "orders", [&] { return name + "another topic"; });
      const auto group = groups_.find(letter.group);
      demand(group != groups_.end(), [&] { return name + "an unknown group"; });
      const auto found = group->second->open.find(letter.offset);
      demand(found != group->second->open.end(), [&] { return name + "the message is done"; });
      const bool just_expired = found->second.dead == Dead::no && found->second.holder == 0 &&
                                group->second->keeps_expired() && may_have_expired(letter.offset);
      if (just_expired) group->second->expire(letter.offset);
      GroupMessage& message = found->second;
      demand(message.dead == Dead::waiting, [&] { return name + "the message is not dead"; });
      demand(!message.has_letter, [&] { return name + "it is there twice"; });
      const std::string fault = Content{letter.content}.difference(record.attributes(), record.payload());
      demand(fault.empty() && log_.at(letter.offset) == letter.content,
             [&] { return name + "it has another content"; });
      demand(headers["lightq-dead-attempts"] == std::to_string(message.attempts),
             [&] { return name + "another number of attempts"; });
      constexpr const char* causes[] = {"", "attempts", "rejected", "expired"};
      demand(message.is_vague || headers["lightq-dead-cause"] == causes[static_cast<int>(message.cause)],
             [&] { return name + "another cause"; });
      demand(message.is_vague || headers["lightq-dead-reason"] == message.reason,
             [&] { return name + "another reason"; });
      message.has_letter = true;
      ++tally_["letters"];
      note("letter " + std::to_string(letters_.size()) + ": message " + std::to_string(letter.offset) +
           " of group " + letter.group);
      for (const GiveBackCommand& each : give_backs_) letter.is_wanted |= each.means(letter, letters_.size());
      letters_.push_back(std::move(letter));
    }
  }
}

std::set<std::uint64_t> World::under_way_of(const ModelGroup& group) {
  std::set<std::uint64_t> offsets;
  ConsumerGroup* const found = real(group);
  if (found == nullptr) return offsets;
  for (const Transfer& each : found->dead().under_way()) offsets.insert(each.message.offset.value);
  return offsets;
}

/// A message leaves an outbox when the dead-letter topic has it; or it is parked, because there is no topic.
void World::observe_outboxes() {
  for (auto& [name, group] : groups_) {
    ConsumerGroup* const found = real(*group);
    if (found == nullptr) continue;
    const DeadMessages* const dead = found->messages().redelivery().dead();
    std::vector<std::uint64_t> gone;
    for (const auto& [offset, message] : group->open) {
      if (message.dead != Dead::waiting) continue;
      if (dead != nullptr && dead->waiting().contains({offset})) continue;
      const ExpiryIndex* const index = found->messages().expiry().index();
      const bool is_ahead =
          found->next() <= Offset{offset} && index != nullptr && index->expired().contains({offset});
      if (is_ahead) continue;  // it is dead by computation
      gone.push_back(offset);
    }
    for (const std::uint64_t offset : gone) {
      if (dead != nullptr && dead->parked().contains({offset})) {
        demand(group->settings.dead_letter_topic.empty() && !group->open.at(offset).has_letter,
               [&] { return "message " + std::to_string(offset) + " was parked for no reason"; });
        group->parked(offset);
        continue;
      }
      if (may_drop() && is_dropped(offset) && !group->open.at(offset).has_letter) continue;  // it is lost
      demand(group->open.at(offset).has_letter || group->open.at(offset).may_have_letter, [&] {
        return "group " + name + ", message " + std::to_string(offset) + " left without a letter";
      });
      group->finish(offset);
    }
  }
}

bool World::was_given_back(const std::string& group, std::uint64_t offset) {
  for (ModelLetter& letter : letters_) {
    if (!letter.is_wanted || letter.is_returned || letter.group != group || letter.offset != offset) continue;
    letter.is_returned = true;
    for (ModelLetter& other : letters_) {
      if (other.group == group && other.offset == offset && !other.is_returned) other.is_passed_over = true;
    }
    ++tally_["letters given back"];
    note("message " + std::to_string(offset) + " is given back to group " + group);
    return true;
  }
  return false;
}

/// Follows a letter that may be given back now, although the group has its message: a seek went back to it.
void World::observe_return(ModelGroup& group, const ConsumerGroup& found, const ModelLetter& letter) {
  const std::uint64_t offset = letter.offset;
  const GroupMessage& message = group.open.at(offset);
  if (found.next() <= Offset{offset}) return;
  if (message.dead == Dead::no) return group.protect(offset, GroupMessage::Protection::perhaps);
  const DeadMessages* const dead = found.messages().redelivery().dead();
  if (dead != nullptr && dead->messages_in({{offset}, {offset + 1}}) != 0) return;
  if (message.has_letter || !is_unfinished(found.messages(), {offset})) return;
  demand(was_given_back(group.name, offset), "a dead message came back");
  group.retry_dead(offset);
}

/// Finds messages that were given back and wait.
void World::observe_returns() {
  const bool any = std::ranges::any_of(
      letters_, [](const ModelLetter& each) { return each.is_wanted && !each.is_settled; });
  if (!any) return;
  for (ModelLetter& letter : letters_) {
    if (!letter.is_wanted || letter.is_settled) continue;
    const auto group = groups_.find(letter.group);
    if (group == groups_.end() || letter.is_returned) continue;
    ConsumerGroup* const found = real(*group->second);
    if (found == nullptr || !is_unfinished(found->messages(), {letter.offset})) continue;
    if (group->second->open.contains(letter.offset)) {
      observe_return(*group->second, *found, letter);
      continue;
    }
    if (found->next() <= Offset{letter.offset}) continue;
    demand(was_given_back(letter.group, letter.offset), "a message came back");
    group->second->give_back(letter.offset);
    group->second->open.at(letter.offset).may_return = false;
  }
  const log::OffsetSet& settled = broker_.letters().letter_book().settled();
  for (std::size_t at = 0; at < letters_.size(); ++at) {
    ModelLetter& letter = letters_[at];
    if (!letter.is_wanted || letter.is_settled || !settled.contains({at})) continue;
    letter.is_settled = true;
  }
}

void World::observe_schedule() {
  schedule_.look_at(broker_.wall());
  const auto first = schedule_.first_due();
  const bool is_due = first && *first <= broker_.wall().us;
  if (!is_due) {
    due_since_ms_ = -1;
  } else if (due_since_ms_ < 0) {
    due_since_ms_ = broker_.ticked_ms();
  }
}

}  // namespace lightq::model
