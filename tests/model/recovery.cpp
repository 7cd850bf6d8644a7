/// Compares the state after a start with the states that the model allows.
#include <algorithm>
#include <utility>

#include "model/world.hpp"

namespace lightq::model {

using namespace broker;
using Dead = GroupMessage::Dead;

void World::restart(milliseconds down) {
  ++tally_["restarts"];
  broker_.restart(down);
  recover(log_.size(), letters_.size(), false, true);
}

/// Ends the process. Messages that are written survive that, and those that are synced survive a power cut.
void World::crash(bool cut, milliseconds down) {
  ++tally_[cut ? "power cuts" : "kills"];
  const bool writes_at_once = broker_.catalogue().orders.broker_type == protocol::BrokerType::file;
  const std::uint64_t durable = broker_.orders_store().durable_offset().value;
  const std::uint64_t durable_letters = broker_.letters_store().durable_offset().value;
  if (const auto target = is_durable() && broker_.orders().schedule().is_made()
                              ? std::optional(broker_.orders().schedule().target())
                              : std::nullopt;
      target && target->ok())
    schedule_.note_durable((**target)->ends().durable.value);
  const std::uint64_t survives = random_.below(3);
  broker_.crash(cut, [&] { return survives == 0 || (survives == 1 && random_.one_in(2)); }, down);
  recover(cut || !writes_at_once ? durable : log_.size(), cut ? durable_letters : letters_.size(), cut,
          false);
}

void World::recover(std::uint64_t log_least, std::uint64_t letters_least, bool cut, bool clean) {
  broker_.journal().clear();
  give_backs_.clear();
  unexplained_.clear();  // the ended process cannot be asked for their letters
  if (!is_durable()) {
    recover_memory();
  } else {
    recover_log(log_least);
    if (is_over_) return;
    recover_letters(letters_least);
    recover_groups(clean);
    recover_schedule(cut);
  }
  recover_recurring();
  recover_subscribers(clean);
  keeps_changes_ = false;
  has_jumped_ = false;
  due_since_ms_ = -1;
  broker_.settle();
}

void World::recover_memory() {
  half_made_.clear();
  log_.clear();
  appended_us_.clear();
  dated_us_.clear();
  aged_ = 0;
  has_expired_.clear();
  expired_ms_.clear();
  letters_.clear();
  groups_.clear();
  schedule_ = {};
}

void World::recover_log(std::uint64_t least) {
  TopicStore& store = broker_.orders_store();
  const std::uint64_t end = store.next_offset().value;
  demand(least <= end, [&] {
    return "the log ends at " + std::to_string(end) + ", and had messages up to " + std::to_string(least);
  });
  demand(end <= log_.size(), "the log has more messages than before");
  log::ReadPosition place{store.first_offset()};
  while (place.offset < store.next_offset()) {
    const auto read = store.read(place);
    const bool is_skipped =
        read.outcome == log::ReadOutcome::trimmed || read.outcome == log::ReadOutcome::damaged;
    if (is_skipped && place.offset < read.next) {
      demand(read.outcome == log::ReadOutcome::trimmed || Offset{least} <= place.offset,
             "a synced message is damaged");
      // A hole among messages that were not synced: groups lose these when they come to them, which the model
      // does not follow.
      is_over_ = is_over_ || read.outcome == log::ReadOutcome::damaged;
      place = log::ReadPosition{read.next};
      continue;
    }
    demand(read.outcome == log::ReadOutcome::batch, "the log cannot be read");
    Offset at = read.batch.base_offset();
    for (auto record = read.batch.records(); !record.done(); record.next(), at = at + 1)
      demand(Content::number_in(record.attributes(), record.payload()) == log_.at(at.value),
             "a message has changed");
    place.offset = read.batch.end_offset();
  }
  tally_["messages lost that were not synced"] += log_.size() - end;
  note("the log ends at " + std::to_string(end));
  log_.resize(end);
  appended_us_.resize(end);
  dated_us_.resize(end);
  has_expired_.resize(end, 0);
  expired_ms_.clear();
}

void World::recover_letters(std::uint64_t least) {
  const std::uint64_t end = broker_.letters_store().next_offset().value;
  demand(least <= end && end <= letters_.size(), "letters are lost");
  letters_.resize(end);
  const log::OffsetSet& settled = broker_.letters().letter_book().settled();
  for (std::size_t at = 0; at < letters_.size(); ++at) letters_[at].is_settled = settled.contains({at});
}

/// A group that ended because the disk failed is there again, at its start, or is not.
void World::recover_half_made() {
  for (const auto& [name, start] : half_made_) {
    ConsumerGroup* const found = broker_.orders().letters().groups().find(name);
    if (found == nullptr || groups_.contains(name)) continue;
    const std::uint64_t at = found->next().value;
    if (at != std::min<std::uint64_t>(start, log_.size())) continue;
    demand(found->committed().value == at, "a new group has messages");
    ModelGroup& group = add_group(name, at);
    group.is_saved = true;
    for (std::uint64_t offset = at; offset < log_.size(); ++offset) group.appended(offset);
    ++tally_["groups found that had ended"];
  }
  half_made_.clear();
}

/// Each message of each group is in a state that it had at most a second before the end.
void World::recover_groups(bool clean) {
  std::erase_if(groups_,
                [&](const auto& each) { return !each.second->is_saved && real(*each.second) == nullptr; });
  recover_half_made();
  for (const char* const name : {"a", "b", "c", "default"}) {
    demand(groups_.contains(name) || broker_.orders().letters().groups().find(name) == nullptr,
           [&] { return std::string("a start has made group ") + name; });
  }
  for (auto& [name, group] : groups_) {
    ConsumerGroup* const found = real(*group);
    demand(found != nullptr, [&] { return "group " + name + " is lost"; });
    const auto views = views_of(*found, group->keeps_expired());
    std::map<std::uint64_t, SavedView> all;
    for (std::uint64_t at = 0; at < log_.size(); ++at) {
      const auto view = views.find(at);
      const SavedView restored = view == views.end() ? SavedView{.is_done = true} : view->second;
      const bool possible = clean
                                ? group->view(at, log_.size()) == restored || group->may_revive(at, restored)
                                : group->is_possible(at, restored, log_.size());
      demand(possible || is_dropped(at), [&] {
        const SavedView before = group->view(at, log_.size());
        return "group " + name + ", message " + std::to_string(at) + " was " +
               (before.is_done ? "done" : std::to_string(before.attempts)) + ", and is " +
               (restored.is_done ? "done" : std::to_string(restored.attempts)) + " after a start; state " +
               std::to_string(static_cast<int>(before.dead)) + ", " +
               std::to_string(static_cast<int>(restored.dead));
      });
      if (!restored.is_done) all[at] = restored;
    }
    demand(views.empty() || views.rbegin()->first < log_.size(),
           "a group has a message that the log has not");
    group->restore(all, found->next().value, has_jumped_);
    group->is_paused = found->is_paused();
    check_letters_of(*group, clean);
  }
}

/// A letter is there once, and its message is done in the group, or will be.
void World::check_letters_of(ModelGroup& group, bool clean) {
  std::map<std::uint64_t, ModelLetter*> newest;
  for (ModelLetter& letter : letters_)
    if (letter.group == group.name) newest[letter.offset] = &letter;
  for (auto& [offset, message] : group.open) message.has_letter = message.may_have_letter = false;
  for (auto& [offset, letter] : newest) {
    const auto found = group.open.find(offset);
    if (letter->is_returned) {
      // The group may have only the death again: messages that are published anew are not given back to it.
      if (letter->is_published && found != group.open.end() && found->second.dead == Dead::waiting)
        found->second.has_letter = true;
      // The return may be forgotten, with the last second; then it follows again.
      if (letter->is_settled || !letter->is_wanted) continue;
      if (found == group.open.end()) {
        letter->is_returned = false;
      } else if (!clean && found->second.dead == Dead::waiting) {  // perhaps by its first death
        letter->is_returned = false;
        found->second.may_have_letter = true;
      }
      continue;
    }
    if (found == group.open.end()) continue;
    if (log_.size() <= offset) continue;
    if ((letter->is_settled || letter->is_passed_over) && found->second.dead != Dead::waiting) continue;
    if (letter->is_passed_over) {
      found->second.may_have_letter = !clean;
      continue;
    }
    demand(found->second.dead == Dead::waiting, [&] {
      return "group " + group.name + ", message " + std::to_string(offset) +
             " has a letter, and is there again";
    });
    found->second.has_letter = true;
  }
}

/// Each delayed message waits or is in the log, once.
void World::recover_schedule(bool cut) {
  std::map<std::uint64_t, ModelDelayed> known = schedule_.waiting;
  for (const auto& [offset, moved] : schedule_.moved) {
    if (log_.size() <= offset) known[moved.first] = moved.second;  // the log has lost it
  }
  std::erase_if(schedule_.moved, [&](const auto& each) { return log_.size() <= each.first; });
  std::map<std::uint64_t, ModelDelayed> found;
  ghosts_ = 0;
  if (broker_.orders().schedule().is_made()) {
    DuePosition from;
    for (bool more = true; more;) {
      const DelayedList list = broker_.orders().schedule().list({}, from, 100).value_or_throw();
      for (const DelayedMessage& each : list.messages) {
        const auto content = Content::number_in(as_text(each.payload()));
        auto message = known.find(each.number);
        const auto is_in_log = [&](const auto& moved) { return moved.second.first == each.number; };
        if (message == known.end() && std::ranges::any_of(schedule_.moved, is_in_log)) {
          ++ghosts_;  // the log has it, as the mover will find
          continue;
        }
        if (message == known.end()) {
          const auto cancelled = schedule_.unsure.find(each.number);
          demand(cut && cancelled != schedule_.unsure.end(),
                 [&] { return "delayed message " + std::to_string(*content) + " is there again"; });
          message = known.insert(*cancelled).first;
        }
        demand(message->second.content == content, "a delayed message has changed");
        const auto& dues = message->second.dues;
        const bool is_possible =
            cut ? std::ranges::find(dues, each.due.us) != dues.end() : dues.back() == each.due.us;
        demand(is_possible, "a delayed message has another due time");
        ModelDelayed kept = message->second;
        kept.dues = {each.due.us};
        demand(found.emplace(each.number, kept).second, "a delayed message waits twice");
      }
      more = list.more;
      from = list.next;
    }
  }
  for (const auto& [number, message] : known) {
    const bool may_be_lost = cut && !message.is_durable;
    demand(found.contains(number) || may_be_lost || (cut && schedule_.unsure.contains(number)),
           [&] { return "delayed message " + std::to_string(message.content) + " is lost"; });
  }
  schedule_.replace(std::move(found));
}

}  // namespace lightq::model
