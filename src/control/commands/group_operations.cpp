/// The operations on consumer groups. Layer: control.
#include "control/commands/group_operations.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "control/catalogue/catalogue_settings.hpp"

namespace lightq::broker {

void GroupOperations::remove(const TopicName& topic, const std::string& group, const Done<void>& done) {
  const auto id = parts_.ready.find(topic);
  if (!id) return done(id.error());
  parts_.data_plane.delete_group(id.value(), group, [=, this, id = id.value()](const Result<void>& deleted) {
    const TopicEntry* const entry = parts_.catalogue.state().find(id);
    const bool has_settings = entry != nullptr && entry->definition.groups.contains(group);
    const bool is_gone = deleted || deleted.error().code == ErrorCode::group_not_found;
    if (!has_settings || !is_gone) return done(deleted);
    set(id, group, {}, done);
  });
}

void GroupOperations::set_paused(const TopicName& topic, const std::string& group, bool paused,
                                 const Done<void>& done) {
  const auto id = parts_.ready.find_with_messages(topic);
  if (!id) return done(id.error());
  parts_.data_plane.set_paused(id.value(), group, paused, done);
}

void GroupOperations::purge(const TopicName& topic, const std::string& group,
                            const Done<std::uint64_t>& done) {
  const auto id = parts_.ready.find_with_messages(topic);
  if (!id) return done(id.error());
  parts_.data_plane.purge(id.value(), group, done);
}

void GroupOperations::seek(const TopicName& topic, const std::string& group, const protocol::GroupPlace& to,
                           bool preview, const Done<protocol::GroupMove>& done) {
  const auto id = parts_.ready.find_with_messages(topic);
  if (!id) return done(id.error());
  parts_.data_plane.seek_group(id.value(), group, to, preview, done);
}

void GroupOperations::change(const Asker& asker, const TopicName& topic, const std::string& group,
                             const protocol::GroupChange& change, const Done<void>& done) {
  const auto id = parts_.ready.find(topic);
  if (!id) return done(id.error());
  const TopicEntry& entry = *parts_.catalogue.state().find(id.value());
  if (const auto refused = objection_to(asker, entry, change)) return done(*refused);
  const auto& groups = entry.definition.groups;
  const auto known = groups.find(group);
  if (known == groups.end() && groups.size() >= parts_.settings.groups_per_topic_max)
    return done(Error{ErrorCode::limit_reached, "the topic has settings for " +
                                                    std::to_string(groups.size()) + " groups, the maximum"});
  GroupSetup setup = known == groups.end() ? GroupSetup() : known->second;
  setup.settings = change.applied_to(setup.settings);
  if (setup.settings.dead_letter_expired && setup.settings.dead_letter_topic.empty())
    return done(Error{ErrorCode::invalid_request, change.dead_letter_topic
                                                      ? "dead_letter_topic: dead_letter_expired needs one"
                                                      : "dead_letter_expired: set a dead_letter_topic, too"});
  if (change.dead_letter_topic) {
    const TopicEntry* const target = parts_.catalogue.state().find(*change.dead_letter_topic);
    setup.dead_letter_topic = target == nullptr ? TopicId{} : target->definition.id;
  }
  set(id.value(), group, setup, done);
}

/// Records the settings, and then applies them: so they survive a restart if they are in force.
void GroupOperations::set(TopicId topic, const std::string& group, const GroupSetup& setup,
                          const Done<void>& done) {
  if (const auto kept = put_group(parts_.catalogue, topic, group, setup); !kept) return done(kept.error());
  parts_.commits.commit([=, this](const Result<void>& committed) {
    if (!committed) return done(committed.error());
    parts_.data_plane.set_group(topic, group, setup, done);
  });
}

std::optional<Error> GroupOperations::objection_to(const Asker& asker, const TopicEntry& topic,
                                                   const protocol::GroupChange& change) const {
  const std::uint64_t longest = parts_.settings.redelivery_ms_max;
  const auto is_too_long = [&](std::uint32_t ms) { return ms > longest; };
  if (change.backoff_ms && std::ranges::any_of(*change.backoff_ms, is_too_long))
    return Error{ErrorCode::invalid_request,
                 "backoff_ms: a step is longer than redelivery_ms_max, " + std::to_string(longest)};
  if (!change.dead_letter_topic || change.dead_letter_topic->empty()) return std::nullopt;
  return objection_to_target(asker, topic, *change.dead_letter_topic);
}

/// Returns the reason why the topic's groups cannot move dead messages to `target`; nothing if they can. An
/// asker without the right to produce there does not learn whether that topic exists.
std::optional<Error> GroupOperations::objection_to_target(const Asker& asker, const TopicEntry& topic,
                                                          const std::string& target) const {
  const auto refused = [](const std::string& why) {
    return Error{ErrorCode::invalid_request, "dead_letter_topic: " + why};
  };
  const std::string& name = topic.definition.name.text();
  if (target == name) return refused("a topic cannot be its own dead-letter topic");
  if (!parts_.rights.produces(asker, target))
    return Error{ErrorCode::unauthorized_access,
                 "dead_letter_topic: this needs the right to produce to topic '" + target + "'"};
  const TopicEntry* const found = parts_.catalogue.state().find(target);
  if (found == nullptr)
    return Error{ErrorCode::topic_not_found, "dead_letter_topic: there is no topic '" + target + "'"};
  if (found->definition.settings.broker_type == protocol::BrokerType::direct)
    return refused("topic '" + target + "' is of type direct, which keeps no messages");
  if (leads_to(found->definition.id, topic.definition.id))
    return refused("dead messages of topic '" + target + "' go to topic '" + name +
                   "', so they would go round for ever");
  return std::nullopt;
}

/// Returns true if a message of topic `from` can become a dead letter in topic `to`, directly or over other
/// topics. Topics that were deleted lead nowhere, even if there are new ones of their names.
bool GroupOperations::leads_to(TopicId from, TopicId to) const {
  std::set<TopicId> seen{from};
  std::vector<TopicId> next{from};
  while (!next.empty()) {
    const TopicEntry* const topic = parts_.catalogue.state().find(next.back());
    next.pop_back();
    if (topic == nullptr) continue;
    for (const auto& [group, setup] : topic->definition.groups) {
      const TopicId target = setup.dead_letter_topic;
      if (target == to) return true;
      if (target != TopicId{} && seen.insert(target).second) next.push_back(target);
    }
  }
  return false;
}

void GroupOperations::list_dead(const TopicName& topic, const std::string& group, const DeadListWish& wish,
                                const Done<protocol::DeadPage>& done) {
  const auto id = parts_.ready.find(topic);
  if (!id) return done(id.error());
  parts_.data_plane.list_dead(id.value(), group, wish, done);
}

void GroupOperations::act_on_dead(const Asker& asker, const TopicName& topic, const std::string& group,
                                  const DeadWish& wish, const Done<protocol::DeadCount>& done) {
  const auto id = parts_.ready.find(topic);
  if (!id) return done(id.error());
  if (group.empty())
    return parts_.data_plane.act_on_letters(id.value(), wish, parts_.rights.managed_by(asker), done);
  parts_.data_plane.act_on_dead(id.value(), group, wish, done);
}

}  // namespace lightq::broker
