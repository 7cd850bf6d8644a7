/// The settings of a broker's topics, groups and users as one JSON document. Layer: cli.
#include "client/transfer/definitions.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>

#include <lightq/base/shown_text.hpp>
#include <lightq/protocol/json_fields.hpp>
#include <lightq/protocol/json_groups.hpp>
#include <lightq/protocol/json_rights.hpp>
#include <lightq/protocol/json_settings.hpp>
#include <lightq/protocol/least_capacity.hpp>

#include "base/ascii_case.hpp"

namespace lightq::cli {
namespace {

using protocol::GroupChange;
using protocol::GroupSettings;
using protocol::TopicChange;
using protocol::TopicSettings;
using protocol::UserListing;
using protocol::detail::FieldReader;
using protocol::detail::OrderedJson;
using StepKind = DefinitionsStep::What;

constexpr std::size_t entries_max = 1'000'000;  // of one list; the size of the document limits them, too

/// Returns all settings as a change, so that a group gets exactly these.
GroupChange change_to(const GroupSettings& settings) {
  return {.max_attempts = settings.max_attempts,
          .backoff_ms = settings.backoff_ms,
          .dead_letter_topic = settings.dead_letter_topic,
          .dead_waiting_max = settings.dead_waiting_max,
          .processing_timeout_ms = settings.processing_timeout_ms,
          .default_processing_timeout = !settings.processing_timeout_ms,
          .pause_when_failing = settings.pause_when_failing,
          .dead_letter_expired = settings.dead_letter_expired};
}

OrderedJson document_of(const TopicDefinitions& topic) {
  OrderedJson to{{"topic", topic.topic}};
  protocol::detail::write_settings(to, topic.settings);
  if (topic.groups.empty()) return to;
  OrderedJson& groups = to["groups"] = OrderedJson::array();
  for (const auto& [name, settings] : topic.groups) {
    OrderedJson& group = groups.emplace_back(OrderedJson{{"group", name}});
    protocol::detail::write_group_change(group, change_to(settings));
  }
  return to;
}

OrderedJson document_of(const UserListing& user) {
  OrderedJson to{{"user_id", user.user_id}, {"admin", user.admin}};
  if (user.uid) to["uid"] = *user.uid;
  to["rights"] = protocol::detail::list_of_rights(user.rights);
  return to;
}

TopicDefinitions read_topic(FieldReader& fields) {
  TopicDefinitions topic;
  const auto name = fields.name("topic");
  topic.topic = name ? name->text() : "";
  topic.settings = protocol::detail::read_settings(fields);
  fields.objects("groups", entries_max, [&](FieldReader& group) {
    const auto group_name = group.name("group");
    const GroupChange change = protocol::detail::read_group_change(group);
    if (group_name) topic.groups.emplace_back(group_name->text(), change.applied_to({}));
  });
  return topic;
}

UserListing read_user(FieldReader& fields) {
  UserListing user;
  user.user_id = fields.text("user_id", 1, limits::user_id_bytes_max);
  user.admin = fields.boolean("admin", false);
  user.uid = protocol::detail::read_uid(fields);
  user.rights = protocol::detail::read_rights(fields, "rights");
  return user;
}

/// Returns the settings that can change, of those that differ.
TopicChange change_between(const TopicSettings& present, const TopicSettings& wanted) {
  TopicChange change;
  const auto differ = [](auto& to, const auto& from, const auto& value) {
    if (from != value) to = value;
  };
  differ(change.message_ttl_ms, present.message_ttl_ms, wanted.message_ttl_ms);
  differ(change.overflow, present.overflow, wanted.overflow);
  differ(change.capacity_bytes, present.capacity_bytes, wanted.capacity_bytes);
  differ(change.retention_bytes, present.retention_bytes, wanted.retention_bytes);
  differ(change.retention_ms, present.retention_ms, wanted.retention_ms);
  differ(change.retention_messages, present.retention_messages, wanted.retention_messages);
  differ(change.retention_over_pending, present.retention_over_pending, wanted.retention_over_pending);
  return change;
}

/// Returns the names of settings that differ, but cannot change.
std::string fixed_between(const TopicSettings& present, const TopicSettings& wanted) {
  std::string names;
  const auto add = [&](bool differs, const char* name) {
    if (differs) names += (names.empty() ? "" : ", ") + std::string(name);
  };
  add(present.broker_type != wanted.broker_type, "broker_type");
  add(present.ring_bytes != wanted.ring_bytes, "ring_bytes");
  add(present.segment_bytes != wanted.segment_bytes, "segment_bytes");
  add(present.open != wanted.open, "open");
  add(present.encrypt_at_rest != wanted.encrypt_at_rest, "encrypt_at_rest");
  return names;
}

std::string text_of(const TopicChange& change) {
  OrderedJson values = OrderedJson::object();
  protocol::detail::write_topic_change(values, change);
  return protocol::detail::dump(values);
}

std::string text_of(const GroupChange& change) {
  OrderedJson values = OrderedJson::object();
  protocol::detail::write_group_change(values, change);
  return protocol::detail::dump(values);
}

/// Raises a capacity that brokers refuse, and that topics of former versions may have. Returns a note on it;
/// empty if nothing was raised.
std::string raise_capacity(TopicSettings& wanted, const TopicDefinitions* present) {
  const std::uint64_t asked = wanted.capacity_bytes;
  if (asked == 0 || asked >= protocol::least_capacity_bytes) return {};
  if (present != nullptr && present->settings.capacity_bytes == asked) return {};
  wanted.capacity_bytes = protocol::least_capacity_bytes;
  return " (capacity_bytes " + std::to_string(asked) + " is too small for any message: raised to " +
         std::to_string(wanted.capacity_bytes) + ")";
}

void add_topic_steps(std::vector<DefinitionsStep>& steps, TopicDefinitions wanted,
                     const TopicDefinitions* present) {
  const std::string name = "topic " + wanted.topic;
  const std::string note = raise_capacity(wanted.settings, present);
  if (present == nullptr) {
    steps.push_back({.what = StepKind::create_topic,
                     .text = name + " " + std::string(to_word(wanted.settings.broker_type)) + note,
                     .topic = wanted.topic,
                     .settings = wanted.settings});
    return;
  }
  const std::string fixed = fixed_between(present->settings, wanted.settings);
  if (!fixed.empty())
    steps.push_back({.what = StepKind::conflict,
                     .text = name + ": cannot change after the topic was created: " + fixed,
                     .topic = wanted.topic});
  if (present->settings.broker_type != wanted.settings.broker_type) return;
  const TopicChange change = change_between(present->settings, wanted.settings);
  if (!change.empty())
    steps.push_back({.what = StepKind::set_topic,
                     .text = name + " " + text_of(change) + note,
                     .topic = wanted.topic,
                     .topic_change = change});
}

void add_group_steps(std::vector<DefinitionsStep>& steps, const TopicDefinitions& wanted,
                     const TopicDefinitions* present) {
  for (const auto& [name, settings] : wanted.groups) {
    GroupSettings before;
    if (present != nullptr) {
      const auto found =
          std::ranges::find(present->groups, name, [](const auto& group) { return group.first; });
      if (found != present->groups.end()) before = found->second;
    }
    if (before == settings) continue;
    const GroupChange change = change_to(settings);
    steps.push_back({.what = StepKind::set_group,
                     .text = "group " + name + " of topic " + wanted.topic + " " + text_of(change),
                     .topic = wanted.topic,
                     .group = name,
                     .group_change = change});
  }
}

bool is_plain_in_shell(char letter) {
  return ('0' <= letter && letter <= '9') || ('a' <= in_lower_case(letter) && in_lower_case(letter) <= 'z') ||
         letter == '.' || letter == '_' || letter == '-' || letter == '@';
}

/// Returns a text as one word for bash and zsh, with escapes for control characters: a document may come from
/// anybody, and people copy commands.
std::string shell_word(const std::string& text) {
  if (!text.empty() && std::ranges::all_of(text, is_plain_in_shell)) return text;
  std::string word = "$'";
  for (const char each : without_controls(text)) word += each == '\'' ? "\\'" : std::string(1, each);
  return word + "'";
}

/// Returns the command line that adds the user.
std::string command_for(const UserListing& user) {
  std::string command = std::string("lightq user add") + (user.admin ? " --admin" : "");
  for (const protocol::TopicRight& right : user.rights) {
    for (const auto& [word, member] : protocol::detail::right_words)
      if (right.rights.*member) command += " --" + std::string(word) + " '" + right.topic + "'";
  }
  return command + (user.user_id.starts_with('-') ? " -- " : " ") + shell_word(user.user_id);
}

/// Adds the rights that a user lacks.
void add_grant_steps(std::vector<DefinitionsStep>& steps, const UserListing& wanted,
                     const UserListing& present) {
  for (protocol::TopicRight right : wanted.rights) {
    const auto known = std::ranges::find(present.rights, right.topic, &protocol::TopicRight::topic);
    std::string words;
    for (const auto& [word, member] : protocol::detail::right_words) {
      right.rights.*member =
          right.rights.*member && (known == present.rights.end() || !(known->rights.*member));
      if (right.rights.*member) words += " " + std::string(word);
    }
    if (!right.rights.any()) continue;
    steps.push_back({.what = StepKind::grant,
                     .text = "user " + without_controls(wanted.user_id) + words + " on " + right.topic,
                     .user = {wanted.user_id, false, {}, {right}}});
  }
}

void add_user_steps(std::vector<DefinitionsStep>& steps, const UserListing& wanted,
                    const UserListing* present) {
  const std::string name = "user " + without_controls(wanted.user_id);
  if (present == nullptr && wanted.uid) {
    steps.push_back({.what = StepKind::create_user, .text = name, .user = wanted});
  } else if (present == nullptr) {
    steps.push_back(
        {.what = StepKind::conflict, .text = name + ": needs a password:  " + command_for(wanted)});
  } else {
    if (present->admin != wanted.admin || present->uid != wanted.uid)
      steps.push_back({.what = StepKind::conflict,
                       .text = name + ": admin and uid cannot change; remove the user, and add it again"});
    add_grant_steps(steps, wanted, *present);
  }
}

/// Returns the first name that is there twice. `kind`: what the names belong to.
template <typename List, typename Name>
std::optional<Error> objection_to_twins(const char* kind, const List& list, Name name) {
  std::set<std::string_view> seen;
  for (const auto& each : list) {
    if (!seen.insert(std::invoke(name, each)).second)
      return Error{ErrorCode::invalid_request,
                   std::string(kind) + " '" + without_controls(std::invoke(name, each)) + "' is there twice"};
  }
  return std::nullopt;
}

std::optional<Error> objection_to_twins(const Definitions& definitions) {
  if (auto twins = objection_to_twins("topic", definitions.topics, &TopicDefinitions::topic)) return twins;
  if (auto twins = objection_to_twins("user", definitions.users, &UserListing::user_id)) return twins;
  for (const TopicDefinitions& topic : definitions.topics) {
    const auto name = [](const auto& group) -> const std::string& { return group.first; };
    if (auto twins = objection_to_twins("group", topic.groups, name)) {
      twins->message = "topic '" + topic.topic + "': " + twins->message;
      return twins;
    }
  }
  return std::nullopt;
}

}  // namespace

std::string definitions_text(const Definitions& definitions, bool is_one_line) {
  OrderedJson document{{"cmd", "definitions"}, {"status", "ok"}, {"format", 1}};
  OrderedJson& topics = document["topics"] = OrderedJson::array();
  for (const TopicDefinitions& topic : definitions.topics) topics.push_back(document_of(topic));
  OrderedJson& users = document["users"] = OrderedJson::array();
  for (const UserListing& user : definitions.users) users.push_back(document_of(user));
  return document.dump(is_one_line ? -1 : 2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

Result<Definitions> parse_definitions(std::string_view text) {
  const auto object = protocol::detail::parse_object(text, Definitions::bytes_max);
  if (!object && object.error().code == ErrorCode::invalid_cmd)
    return Error{ErrorCode::invalid_json, "the document is not a JSON object"};
  if (!object) return object.error();
  FieldReader fields(*object);
  if (!fields.has("format"))
    fields.fail("format", "missing; this is no document of lightq definitions export");
  if (fields.number("format", 1, protocol::detail::number_max, 1) != 1)
    fields.fail("format", "is of a newer version of lightq");
  Definitions definitions;
  fields.objects("topics", entries_max,
                 [&](FieldReader& topic) { definitions.topics.push_back(read_topic(topic)); });
  fields.objects("users", entries_max,
                 [&](FieldReader& user) { definitions.users.push_back(read_user(user)); });
  if (fields.error()) return *fields.error();
  if (auto twins = objection_to_twins(definitions)) return *std::move(twins);
  return definitions;
}

std::vector<DefinitionsStep> steps_to(const Definitions& wanted, const Definitions& present) {
  const auto topic_of = [&](const std::string& name) {
    const auto found = std::ranges::find(present.topics, name, &TopicDefinitions::topic);
    return found == present.topics.end() ? nullptr : &*found;
  };
  std::vector<DefinitionsStep> steps;
  for (const TopicDefinitions& topic : wanted.topics) add_topic_steps(steps, topic, topic_of(topic.topic));
  for (const TopicDefinitions& topic : wanted.topics) add_group_steps(steps, topic, topic_of(topic.topic));
  for (const UserListing& user : wanted.users) {
    const auto found = std::ranges::find(present.users, user.user_id, &UserListing::user_id);
    add_user_steps(steps, user, found == present.users.end() ? nullptr : &*found);
  }
  return steps;
}

}  // namespace lightq::cli
