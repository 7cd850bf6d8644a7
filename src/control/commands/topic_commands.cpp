/// The commands create_topic, delete_topic and list_topics, and starting topics at the broker's start. Layer:
/// control.
#include <functional>
#include <memory>
#include <utility>

#include "access/secret.hpp"
#include "admission/fair_share.hpp"
#include "control/commands/command_handler.hpp"

namespace lightq::broker {

namespace {

/// The number of topics that start at the same time at the broker's start; the data plane's mailboxes are
/// bounded.
constexpr std::size_t bring_up_at_once = 256;

/// A line of the broker's log names at most this many topics, and states the number of the others.
constexpr std::size_t open_topics_named = 20;

// The length of reply that takes as long to write as comparing a topic's name with a pattern.
constexpr std::uint64_t pattern_work_bytes = 4;

Error already_exists() {
  return {ErrorCode::topic_already_exists, "topic already exists"};
}

Error credential_gone() {
  return {ErrorCode::busy, "another command is removing the topic's user; try again"};
}

}  // namespace

void CommandHandler::execute(protocol::CreateTopic request, const Answer& answer) {
  protocol::Credentials admin = std::move(request.admin);
  const auto kept = std::make_shared<protocol::CreateTopic>(std::move(request));
  permit_manager(
      "create_topic", std::move(admin), kept->topic, answer,
      [this, kept, answer](const UserRecord* user) { create_named(*kept, asker_of(user), answer); });
}

/// Reserves the name until the catalogue has it: of two clients that create it at the same time, one
/// succeeds.
void CommandHandler::create_named(const protocol::CreateTopic& request, const TicketHolder& asker,
                                  const Answer& answer) {
  const auto& name = request.topic.text();
  if (catalogue_.state().find(name) != nullptr || coming_.contains(name)) {
    return answer(error_reply("create_topic", already_exists()));
  }
  const std::uint64_t maker = is_still_admin(asker) ? 0 : asker.user;
  if (const auto full = no_place_for_topic(maker)) return answer(error_reply("create_topic", *full));
  if (const auto refused = objection_to_ring(request.settings))
    return answer(error_reply("create_topic", *refused));
  if (const auto refused = objection_to_user(request.user.user_id))
    return answer(error_reply("create_topic", *refused));
  if (request.user.user_id.empty()) return create_with(request, maker, 0, answer);
  coming_.insert(name);
  makers_.coming(maker);
  const auto kept = std::make_shared<protocol::CreateTopic>(request);
  enrol(
      request.user, asker,
      [this, kept, asker, maker, answer](const Result<Enrolment>& enrolment) {
        coming_.erase(kept->topic.text());
        makers_.came(maker);
        if (!still_manages(asker, kept->topic.text())) {
          refuse("create_topic", AuthOutcome::wrong, answer);
        } else if (enrolment) {
          create_enrolled(*kept, maker, enrolment.value(), answer);
        } else {
          answer(error_reply("create_topic", enrolment.error()));
        }
      },
      answer);
}

void CommandHandler::enrol(const protocol::Credentials& given, const TicketHolder& asker,
                           Authenticator::EnrolDone done, const Answer& answer) {
  using EnrolTiming = Authenticator::EnrolTiming;
  // The credential may be of a deleted user, or one that the catalogue dropped because no topic refers to it.
  const auto known = authenticator_.remembered(given);
  if (known != 0 && catalogue_.state().credential(known) == nullptr) authenticator_.forget(known);
  authenticator_.enrol(given, std::move(done), answer.source().key,
                       is_still_admin(asker) ? EnrolTiming::at_once : EnrolTiming::constant_time,
                       name_of(asker));
}

/// Returns the reason why a topic cannot have such a ring; nothing if it can.
std::optional<Error> CommandHandler::objection_to_ring(const protocol::TopicSettings& settings) const {
  if (!has_ring(settings.broker_type) || settings.ring_bytes <= settings_.ring_bytes_max) return std::nullopt;
  count(settings_.limits_reached, Limit::ring_bytes_max);
  return Error{ErrorCode::limit_reached, "ring_bytes: " + std::to_string(settings.ring_bytes) +
                                             " exceeds this broker's ring_bytes_max of " +
                                             std::to_string(settings_.ring_bytes_max)};
}

/// Returns the reason why the maker may not create another topic; nothing if it may. `maker` 0: an
/// administrator.
std::optional<Error> CommandHandler::no_place_for_topic(std::uint64_t maker) const {
  const std::size_t taken = catalogue_.state().topics().size() + coming_.size();
  const auto verdict = FairShare(settings_.topics_max).ask(taken, maker, makers_.of(maker));
  if (verdict == FairShare::Verdict::room) return std::nullopt;
  count(settings_.limits_reached, Limit::topics_max);
  const std::string most = std::to_string(settings_.topics_max);
  if (verdict == FairShare::Verdict::full)
    return Error{ErrorCode::limit_reached, "there are " + most + " topics, the maximum (topics_max)"};
  return Error{ErrorCode::limit_reached, "there are " + std::to_string(makers_.of(maker)) +
                                             " topics of this user, and the last of " + most +
                                             " are reserved for users with fewer"};
}

/// Returns the reason why there is no memory for another ring; nothing if there is. A ring is mapped whole
/// when its topic starts and filled later, so its maximum size counts. `maker`: as of no_place_for_topic.
std::optional<Error> CommandHandler::no_memory_for(const protocol::TopicSettings& settings,
                                                   std::uint64_t maker) const {
  if (settings_.memory_bytes_max == 0 || !has_ring(settings.broker_type)) return std::nullopt;
  std::uint64_t taken = 0;
  for (const auto& [name, entry] : catalogue_.state().topics()) {
    const auto& each = entry.definition.settings;
    if (has_ring(each.broker_type)) taken += each.ring_bytes;
  }
  const std::uint64_t own = makers_.ring_bytes_of(maker);
  const auto verdict = FairShare(settings_.memory_bytes_max).ask(taken, maker, own, settings.ring_bytes);
  if (verdict == FairShare::Verdict::room) return std::nullopt;
  count(settings_.limits_reached, Limit::memory_bytes_max);
  const std::string most = std::to_string(settings_.memory_bytes_max);
  if (verdict == FairShare::Verdict::full)
    return Error{ErrorCode::limit_reached, "the rings of all topics would be " +
                                               std::to_string(taken + settings.ring_bytes) +
                                               " bytes, more than the maximum of " + most};
  return Error{ErrorCode::limit_reached,
               "the rings of this user's topics would be " + std::to_string(own + settings.ring_bytes) +
                   " bytes, and the last eighth of " + most + " is reserved for users with less"};
}

/// Returns the reason why a topic cannot have an own user of this name; nothing if it can.
std::optional<Error> CommandHandler::objection_to_user(const std::string& user_id) const {
  if (authenticator_.is_admin(user_id))
    return Error{ErrorCode::invalid_request, "user_id: this name belongs to the administrator"};
  if (catalogue_.state().user(user_id) != nullptr) {
    return Error{ErrorCode::user_already_exists,
                 "user_id: there is a user of this name; leave it out, and grant rights on the topic"};
  }
  return std::nullopt;
}

void CommandHandler::create_enrolled(const protocol::CreateTopic& request, std::uint64_t maker,
                                     const Enrolment& enrolment, const Answer& answer) {
  if (enrolment.known_id != 0) return create_with(request, maker, enrolment.known_id, answer);
  const auto id = catalogue_.add_credential(request.user.user_id, enrolment.argon2);
  if (!id) return answer(error_reply("create_topic", id.error()));
  authenticator_.remember(id.value(), request.user);
  create_with(request, maker, id.value(), answer);
}

void CommandHandler::create_with(const protocol::CreateTopic& request, std::uint64_t maker,
                                 std::uint64_t credential_id, const Answer& answer) {
  if (const auto refused = objection_to_user(request.user.user_id))
    return answer(error_reply("create_topic", *refused));
  if (credential_id != 0 && catalogue_.state().credential(credential_id) == nullptr)
    return answer(error_reply("create_topic", credential_gone()));
  if (const auto full = no_memory_for(request.settings, maker))
    return answer(error_reply("create_topic", *full));
  const auto added = catalogue_.add_topic(request.topic, request.settings, credential_id);
  if (!added) return answer(error_reply("create_topic", added.error()));
  not_ready_.insert(added.value().id.value);
  const auto& settings = added.value().settings;
  makers_.made(added.value().id, maker, has_ring(settings.broker_type) ? settings.ring_bytes : 0);
  commits_.commit([this, definition = added.value(), answer](const Result<void>& committed) {
    if (!committed) return undo_create(definition.id, committed.error(), answer);
    add_to_data_plane(definition, answer);
  });
}

void CommandHandler::add_to_data_plane(const TopicDefinition& definition, const Answer& answer) {
  const TopicEntry* const entry = catalogue_.state().find(definition.id);
  if (entry != nullptr && entry->credential_id != 0)
    data_plane_.set_owner(definition.id, entry->credential_id, [](const Result<void>&) {});
  data_plane_.add_topic(
      definition, {},
      [this, id = definition.id, name = definition.name.text(), open = definition.settings.open,
       answer](const Result<void>& added) {
        if (!added) {
          remove_files(id, [](const Result<void>&) {});  // files it wrote before it failed
          return undo_create(id, added.error(), answer);
        }
        not_ready_.erase(id.value);
        if (open)
          sink_.warn("topic " + name + " is open: plain clients that reach its endpoints need no ticket");
        answer(protocol::OkReply{"create_topic", "topic created successfully", {}});
      });
}

void CommandHandler::undo_create(TopicId topic, const Error& error, const Answer& answer) {
  if (const auto removed = catalogue_.remove_topic(topic); !removed) {
    sink_.error("cannot remove the record of a topic that could not be created: " + removed.error().text());
    failed_.emplace(topic.value, error);
  }
  not_ready_.erase(topic.value);
  makers_.gone(topic);
  commits_.commit([answer, error](const Result<void>&) { answer(error_reply("create_topic", error)); });
}

/// Deletes the files of a removed topic. The catalogue remembers the removal until they are gone.
void CommandHandler::remove_files(TopicId topic, std::function<void(const Result<void>&)> done) {
  data_plane_.remove_topic(topic, [this, topic, done = std::move(done)](const Result<void>& removed) {
    if (removed) catalogue_.forget_removed_topic(topic);
    done(removed);
  });
}

void CommandHandler::execute(protocol::DeleteTopic request, const Answer& answer) {
  permit_manager(
      "delete_topic", std::move(request.admin), request.topic, answer,
      [this, topic = request.topic, answer](const UserRecord*) {
        const TopicEntry* entry = catalogue_.state().find(topic.text());
        if (entry == nullptr || not_ready_.contains(entry->definition.id.value)) {
          return answer(error_reply("delete_topic", {ErrorCode::topic_not_found, "topic not found"}));
        }
        const TopicId id = entry->definition.id;
        if (const auto removed = catalogue_.remove_topic(id); !removed) {
          return answer(error_reply("delete_topic", removed.error()));
        }
        commits_.commit([this, id, answer](const Result<void>& committed) {
          // A later start may find the topic again and then needs its files.
          if (!committed) return answer(error_reply("delete_topic", committed.error()));
          failed_.erase(id.value);
          makers_.gone(id);
          if (settings_.client_keys != nullptr) settings_.client_keys->remove_topic(id);
          remove_files(id, [answer](const Result<void>& removed) {
            if (!removed) return answer(error_reply("delete_topic", removed.error()));
            answer(protocol::OkReply{"delete_topic", "topic deleted successfully", {}});
          });
        });
      });
}

void CommandHandler::execute(protocol::ListTopics request, const Answer& answer) {
  permit_someone("list_topics", std::move(request.admin), answer, [this, answer](const UserRecord* user) {
    protocol::ListReply reply;
    // The cost is the same for a user that may see few topics as for one that may see all.
    const std::uint64_t patterns = user == nullptr ? 0 : user->rights.size();
    answer.worked(patterns * catalogue_.state().topics().size() * pattern_work_bytes);
    for (const auto& [name, entry] : catalogue_.state().topics()) {
      if (not_ready_.contains(entry.definition.id.value)) continue;
      if (user != nullptr && !user->knows(name)) continue;
      const auto& settings = entry.definition.settings;
      reply.topics.push_back({name, settings, settings.open || settings_.open_topics, settings_.open_topics});
    }
    answer(std::move(reply));
  });
}

/// Warns of the topics that were created as open.
void CommandHandler::warn_of_open_topics() {
  std::size_t count = 0;
  std::string names;
  for (const auto& [name, entry] : catalogue_.state().topics()) {
    if (!entry.definition.settings.open || ++count > open_topics_named) continue;
    names += (names.empty() ? "" : ", ") + name;
  }
  if (count == 0) return;
  if (count > open_topics_named) names += " and " + std::to_string(count - open_topics_named) + " more";
  sink_.warn("plain clients of these open topics need no ticket: " + names);
}

void CommandHandler::bring_up(std::function<void()> done) {
  brought_up_ = std::move(done);
  warn_of_open_topics();
  // Before any endpoint is opened.
  for (const auto& [name, user] : catalogue_.state().users())
    data_plane_.put_user(user, [](const Result<void>&) {});
  for (const auto& [name, entry] : catalogue_.state().topics()) {
    to_bring_up_.push_back(entry.definition.id);
    not_ready_.insert(entry.definition.id.value);
  }
  bring_up_next();
}

void CommandHandler::bring_up_next() {
  while (!to_bring_up_.empty() && being_brought_up_ < bring_up_at_once) {
    const TopicId id = to_bring_up_.back();
    to_bring_up_.pop_back();
    ++being_brought_up_;
    const TopicEntry& entry = *catalogue_.state().find(id);
    const auto& definition = entry.definition;
    if (entry.credential_id != 0) data_plane_.set_owner(id, entry.credential_id, [](const Result<void>&) {});
    data_plane_.add_topic(definition, catalogue_.state().endpoints_of(id),
                          [this, id, name = definition.name.text()](const Result<void>& added) {
                            --being_brought_up_;
                            not_ready_.erase(id.value);
                            if (!added) {
                              sink_.error("topic " + name + " cannot be used: " + added.error().text());
                              failed_.emplace(id.value, added.error());
                            }
                            bring_up_next();
                          });
  }
  if (to_bring_up_.empty() && being_brought_up_ == 0 && brought_up_) std::exchange(brought_up_, {})();
}

}  // namespace lightq::broker
