/// The operations on topics. Layer: control.
#include "control/commands/topic_operations.hpp"

#include <string>
#include <utility>

#include "admission/turn_work.hpp"
#include "control/catalogue/catalogue_settings.hpp"
#include "control/templates/least_capacity.hpp"

namespace lightq::broker {

namespace {

/// The number of topics that start at the same time at the broker's start; the data plane's mailboxes are
/// bounded.
constexpr std::size_t bring_up_at_once = 256;

/// A line of the broker's log names at most this many topics, and states the number of the others.
constexpr std::size_t open_topics_named = 20;

}  // namespace

void TopicOperations::create(const Asker& asker, NewTopic topic, const Done<protocol::CreatedTopic>& done) {
  protocol::CreatedTopic created{topic.settings};
  if (topic.given) {
    const TopicTemplate* const from = parts_.settings.templates.find(topic.name.text());
    const auto settings = settings_of_new_topic(topic.settings, *topic.given, from);
    if (!settings) return done(settings.error());
    created = {*settings, from == nullptr ? std::string() : from->pattern};
  }
  topic.settings = created.settings;
  create_resolved(asker, std::move(topic), [created, done](const Result<void>& made) {
    if (!made) return done(made.error());
    done(created);
  });
}

void TopicOperations::create_resolved(const Asker& asker, NewTopic topic, const Done<void>& done) {
  const std::uint64_t maker = parts_.rights.is_admin(asker) ? 0 : asker.holder.user;
  if (const auto refused = objection_to(topic, maker)) return done(*refused);
  const auto creation = std::make_shared<const Creation>(Creation{std::move(topic), maker, done});
  if (creation->topic.user.user_id.empty()) return create_with(*creation, 0);
  quota_.coming(creation->topic.name.text(), maker);
  parts_.passwords.enrol(creation->topic.user, asker,
                         [this, creation, asker](const Result<Enrolment>& enrolment) {
                           const std::string& name = creation->topic.name.text();
                           quota_.came(name, creation->maker);
                           if (!parts_.rights.manages(asker, name))
                             return creation->done(parts_.rights.refusal());
                           if (!enrolment) return creation->done(enrolment.error());
                           create_enrolled(*creation, *enrolment);
                         });
}

/// Returns the reason why the topic cannot be created now; nothing if it can.
std::optional<Error> TopicOperations::objection_to(const NewTopic& topic, std::uint64_t maker) const {
  const std::string& name = topic.name.text();
  if (parts_.catalogue.state().find(name) != nullptr || quota_.is_coming(name))
    return Error{ErrorCode::topic_already_exists, "topic already exists"};
  if (const auto refused = objection_to_capacity(topic.settings.capacity_bytes)) return refused;
  if (const auto full = quota_.objection_to_maker(maker)) return full;
  if (const auto refused = quota_.objection_to_ring(topic.settings)) return refused;
  return objection_to_user(topic.user.user_id);
}

/// Returns the reason why a topic cannot have an own user of this name; nothing if it can.
std::optional<Error> TopicOperations::objection_to_user(const std::string& user_id) const {
  if (parts_.passwords.is_admin(user_id))
    return Error{ErrorCode::invalid_request, "user_id: this name belongs to the administrator"};
  if (parts_.catalogue.state().user(user_id) != nullptr) {
    return Error{ErrorCode::user_already_exists,
                 "user_id: there is a user of this name; leave it out, and grant rights on the topic"};
  }
  return std::nullopt;
}

void TopicOperations::create_enrolled(const Creation& creation, const Enrolment& enrolment) {
  if (enrolment.known_id != 0) return create_with(creation, enrolment.known_id);
  const auto& user = creation.topic.user;
  const auto id = parts_.catalogue.add_credential(user.user_id, enrolment.argon2);
  if (!id) return creation.done(id.error());
  parts_.passwords.remember(id.value(), user);
  create_with(creation, id.value());
}

void TopicOperations::create_with(const Creation& creation, std::uint64_t credential_id) {
  const auto& [topic, maker, done] = creation;
  if (const auto refused = objection_to_user(topic.user.user_id)) return done(*refused);
  if (credential_id != 0 && parts_.catalogue.state().credential(credential_id) == nullptr)
    return done(Error{ErrorCode::busy, "another command is removing the topic's user; try again"});
  if (const auto full = quota_.objection_to_memory(topic.settings, maker)) return done(*full);
  const auto added = parts_.catalogue.add_topic(topic.name, topic.settings, credential_id);
  if (!added) return done(added.error());
  const TopicDefinition& definition = added.value();
  parts_.ready.begin_start(definition.id);
  quota_.made(definition, maker);
  parts_.commits.commit([this, definition, answer = done](const Result<void>& committed) {
    if (!committed) return undo_create(definition.id, committed.error(), answer);
    add_to_data_plane(definition, answer);
  });
}

/// Tells the data plane which credential permits everything with the topic.
void TopicOperations::set_owner(const TopicEntry& entry) {
  if (entry.credential_id == 0) return;
  parts_.data_plane.set_owner(entry.definition.id, entry.credential_id, [](const Result<void>&) {});
}

void TopicOperations::add_to_data_plane(const TopicDefinition& definition, const Done<void>& done) {
  const TopicEntry* const entry = parts_.catalogue.state().find(definition.id);
  if (entry != nullptr) set_owner(*entry);
  parts_.data_plane.add_topic(
      definition, {},
      [this, id = definition.id, name = definition.name.text(), open = definition.settings.open,
       done](const Result<void>& added) {
        if (!added) {
          remove_files(id, [](const Result<void>&) {});  // files it wrote before it failed
          return undo_create(id, added.error(), done);
        }
        parts_.ready.end_start(id);
        if (open)
          parts_.sink.warn("topic " + name +
                           " is open: plain clients that reach its endpoints need no ticket");
        done({});
      });
}

void TopicOperations::undo_create(TopicId topic, const Error& error, const Done<void>& done) {
  if (const auto removed = parts_.catalogue.remove_topic(topic); !removed) {
    parts_.sink.error("cannot remove the record of a topic that could not be created: " +
                      removed.error().text());
    parts_.ready.failed(topic, error);
  }
  parts_.ready.end_start(topic);
  quota_.gone(topic);
  parts_.commits.commit([done, error](const Result<void>&) { done(error); });
}

/// Deletes the files of a removed topic. The catalogue remembers the removal until they are gone.
void TopicOperations::remove_files(TopicId topic, Done<void> done) {
  parts_.data_plane.remove_topic(topic, [this, topic, done = std::move(done)](const Result<void>& removed) {
    if (removed) parts_.catalogue.forget_removed_topic(topic);
    done(removed);
  });
}

void TopicOperations::remove(const TopicName& name, const Done<void>& done) {
  const auto found = parts_.ready.find_known(name);
  if (!found) return done(found.error());
  const TopicId id = found.value();
  if (const auto removed = parts_.catalogue.remove_topic(id); !removed) return done(removed.error());
  parts_.commits.commit([this, id, done](const Result<void>& committed) {
    // A later start may find the topic again and then needs its files.
    if (!committed) return done(committed.error());
    parts_.ready.removed(id);
    quota_.gone(id);
    if (parts_.settings.client_keys != nullptr) parts_.settings.client_keys->remove_topic(id);
    remove_files(id, done);
  });
}

TopicList TopicOperations::list(const Asker& asker) const {
  TopicList list;
  const auto& topics = parts_.catalogue.state().topics();
  const UserRecord* const user = parts_.rights.user_of(asker);
  // The cost is the same for a user that may see few topics as for one that may see all.
  if (user != nullptr) list.work_bytes = user->rights.size() * topics.size() * pattern_work_bytes;
  TurnWork::add(list.work_bytes + TurnWork::range_passed * topics.size());
  for (const auto& [name, entry] : topics) {
    if (parts_.ready.is_starting(entry.definition.id)) continue;
    if (AskerRights::sees(asker, user, name))
      list.topics.push_back(listing_of(name, entry.definition.settings));
  }
  return list;
}

TopicList TopicOperations::list_with_groups(const Asker& asker, const std::optional<TopicName>& after) const {
  TopicList list;
  const auto& topics = parts_.catalogue.state().topics();
  const UserRecord* const user = parts_.rights.user_of(asker);
  std::size_t entries = 0;
  auto next = after ? topics.upper_bound(after->text()) : topics.begin();
  for (; next != topics.end() && entries < limits::stats_page_entries_max; ++next) {
    const auto& [name, entry] = *next;
    if (user != nullptr) list.work_bytes += user->rights.size() * pattern_work_bytes;
    TurnWork::add(TurnWork::range_passed);
    // Also a page's end must not tell the name of a topic that the user may not see.
    if (parts_.ready.is_starting(entry.definition.id) || !AskerRights::sees(asker, user, name)) continue;
    ++entries;
    list.continue_after = name;
    TurnWork::add(TurnWork::range_passed * entry.definition.groups.size());
    auto& listing = list.topics.emplace_back(listing_of(name, entry.definition.settings));
    for (const auto& [group, setup] : entry.definition.groups) {
      if (is_default(setup)) continue;
      listing.groups.push_back({group, setup.settings});
      ++entries;
    }
  }
  TurnWork::add(list.work_bytes);
  if (next == topics.end()) list.continue_after.clear();
  return list;
}

protocol::TopicListing TopicOperations::listing_of(const std::string& name,
                                                   const protocol::TopicSettings& settings) const {
  const bool by_broker = parts_.settings.open_topics;
  return {name, settings, settings.open || by_broker, by_broker};
}

void TopicOperations::set_paused(const TopicName& name, bool paused, const Done<void>& done) {
  const auto id = parts_.ready.find_with_messages(name);
  if (!id) return done(id.error());
  // The catalogue records it first, so that it survives a restart.
  if (const auto kept = parts_.catalogue.set_paused(id.value(), paused); !kept) return done(kept.error());
  parts_.commits.commit([this, topic = id.value(), paused, done](const Result<void>& committed) {
    if (!committed) return done(committed.error());
    parts_.data_plane.set_paused(topic, {}, paused, done);
  });
}

void TopicOperations::change(const TopicName& name, const protocol::TopicChange& change,
                             const Done<void>& done) {
  const auto id = parts_.ready.find_with_messages(name);
  if (!id) return done(id.error());
  const auto& settings = parts_.catalogue.state().find(id.value())->definition.settings;
  if (change.is_about_files() && !has_files(settings.broker_type))
    return done(Error{ErrorCode::invalid_request,
                      "capacity_bytes, retention_...: only for broker_type file, queue_file; the capacity of "
                      "a queue is its ring_bytes, which cannot change after the topic was created"});
  if (const auto refused = objection_to_capacity(change.capacity_bytes.value_or(0))) return done(*refused);
  // The catalogue records it first, so that it survives a restart.
  if (const auto kept = put_topic_change(parts_.catalogue, id.value(), change); !kept)
    return done(kept.error());
  parts_.commits.commit([this, topic = id.value(), change, done](const Result<void>& committed) {
    if (!committed) return done(committed.error());
    parts_.data_plane.change_topic(topic, change, done);
  });
}

void TopicOperations::purge(const TopicName& name, const Done<std::uint64_t>& done) {
  const auto id = parts_.ready.find_with_messages(name);
  if (!id) return done(id.error());
  parts_.data_plane.purge(id.value(), {}, done);
}

/// Warns of the topics that were created as open.
void TopicOperations::warn_of_open_topics() {
  std::size_t count = 0;
  std::string names;
  for (const auto& [name, entry] : parts_.catalogue.state().topics()) {
    if (!entry.definition.settings.open || ++count > open_topics_named) continue;
    names += (names.empty() ? "" : ", ") + name;
  }
  if (count == 0) return;
  if (count > open_topics_named) names += " and " + std::to_string(count - open_topics_named) + " more";
  parts_.sink.warn("plain clients of these open topics need no ticket: " + names);
}

void TopicOperations::bring_up(std::function<void()> done) {
  brought_up_ = std::move(done);
  warn_of_open_topics();
  std::vector<std::pair<TopicId, std::string>> all;
  for (const auto& [name, entry] : parts_.catalogue.state().topics()) {
    to_bring_up_.push_back(entry.definition.id);
    parts_.ready.begin_start(entry.definition.id);
    all.emplace_back(entry.definition.id, name);
  }
  parts_.data_plane.expect_topics(all);
  bring_up_next();
}

void TopicOperations::bring_up_next() {
  const auto& state = parts_.catalogue.state();
  while (!to_bring_up_.empty() && being_brought_up_ < bring_up_at_once) {
    const TopicId id = to_bring_up_.back();
    to_bring_up_.pop_back();
    ++being_brought_up_;
    const TopicEntry& entry = *state.find(id);
    set_owner(entry);
    parts_.data_plane.add_topic(
        entry.definition, state.endpoints_of(id),
        [this, id, name = entry.definition.name.text()](const Result<void>& added) {
          --being_brought_up_;
          parts_.ready.end_start(id);
          if (!added) {
            parts_.sink.error("topic " + name + " cannot be used: " + added.error().text());
            parts_.ready.failed(id, added.error());
          }
          bring_up_next();
        });
  }
  if (to_bring_up_.empty() && being_brought_up_ == 0 && brought_up_) std::exchange(brought_up_, {})();
}

}  // namespace lightq::broker
