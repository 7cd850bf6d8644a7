/// `lightq definitions export|import`. Layer: cli.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "client/invocation.hpp"
#include "client/json_text.hpp"
#include "client/session.hpp"
#include "client/terminal.hpp"
#include "client/transfer/definitions.hpp"

namespace lightq::cli {
namespace {

/// Asks the broker. A user who is no administrator sees the topics on which it has a right, and no users;
/// `sees_users` says so.
Result<Definitions> definitions_of(Client& client, bool& sees_users) {
  const auto topics = client.list_topics(ListedGroups::with_settings);
  if (!topics) return topics.error();
  const auto stats = client.stats_of_all();
  if (!stats) return stats.error();
  Definitions definitions;
  for (const TopicListing& topic : *topics) {
    TopicDefinitions& made =
        definitions.topics.emplace_back(TopicDefinitions{topic.topic, topic.settings, {}});
    for (const protocol::GroupListing& group : topic.groups)
      made.groups.emplace_back(group.group, group.settings);
    // Adds groups that an older broker has in its statistics only.
    const auto known = std::ranges::find(*stats, topic.topic, &TopicStats::topic);
    if (known == stats->end()) continue;
    for (const GroupStats& group : known->groups)
      if (!group.group.empty() && group.settings != protocol::default_group_settings &&
          std::ranges::find(made.groups, group.group, [](const auto& each) { return each.first; }) ==
              made.groups.end())
        made.groups.emplace_back(group.group, group.settings);
  }
  auto users = client.list_users();
  sees_users = users.ok();
  if (!users && users.error().code != ErrorCode::unauthorized_access) return users.error();
  if (users) definitions.users = std::move(*users);
  return definitions;
}

/// Reads a file, or standard input for `-`.
Result<std::string> text_of_file(const std::string& name) {
  const auto close = [](std::FILE* file) {
    if (file != stdin) std::fclose(file);
  };
  const std::unique_ptr<std::FILE, decltype(close)> file(
      name == "-" ? stdin : std::fopen(name.c_str(), "rbe"), close);
  if (file == nullptr) return Error{ErrorCode::io_error, "cannot open '" + name + "'", errno};
  std::string text;
  std::array<char, 64 * 1024> part{};
  while (text.size() <= Definitions::bytes_max) {
    const std::size_t got = std::fread(part.data(), 1, part.size(), file.get());
    text.append(part.data(), got);
    if (got == 0) break;
  }
  if (std::ferror(file.get()) != 0) return Error{ErrorCode::io_error, "cannot read '" + name + "'", errno};
  return text;
}

/// Returns the names of all settings that a topic of this type has, so that no template of the broker changes
/// one.
protocol::GivenSettings all_settings_of(const TopicSettings& settings) {
  protocol::GivenSettings all;
  protocol::visit_topic_settings([&](std::string_view name, auto) {
    if (has_setting(settings.broker_type, name)) all.add(name);
  });
  return all;
}

Result<void> execute(Client& client, const DefinitionsStep& step) {
  using What = DefinitionsStep::What;
  switch (step.what) {
    case What::create_topic: {
      const auto created =
          BrokerControl::of(client).create_topic(step.topic, step.settings, all_settings_of(step.settings));
      return created ? Result<void>() : Result<void>(created.error());
    }
    case What::set_topic: return client.set_topic(step.topic, step.topic_change);
    case What::set_group: {
      Result<GroupControl> group = client.group(step.topic, step.group);
      return group ? group->set(step.group_change) : Result<void>(group.error());
    }
    case What::create_user:
      return client.create_user(step.user.user_id, "", step.user.rights, step.user.admin, step.user.uid);
    case What::grant: return client.grant(step.user.user_id, step.user.rights.front());
    case What::conflict: break;
  }
  return {};
}

/// Prints the steps that were, or would be, executed.
bool print_steps(const Common& common, const std::vector<DefinitionsStep>& steps, bool preview,
                 bool is_whole) {
  Output out;
  if (common.json) {
    JsonArray list;
    for (const DefinitionsStep& step : steps)
      list.add(JsonObject().add("step", to_word(step.what)).add("description", step.text).text());
    JsonObject reply;
    reply.add("cmd", "definitions").add("status", is_whole ? "ok" : "error");
    if (preview) reply.add("preview", true);
    out.write(reply.add_raw("steps", list.text()).text() + "\n");
    return out.end();
  }
  for (const DefinitionsStep& step : steps)
    out.write(std::string(to_word(step.what)) + "\t" + step.text + "\n");
  if (steps.empty() && !common.quiet) say("nothing to change");
  return out.end();
}

}  // namespace

int run_definitions_export(const Common& common) {
  Result<Client> client = open_client(common);
  if (!client) return fail(client.error());
  bool sees_users = true;
  const auto definitions = definitions_of(*client, sees_users);
  if (!definitions) return fail(definitions.error());
  if (!sees_users && !common.quiet) say("without the users: only an administrator may list them");
  Output out;
  out.write(definitions_text(*definitions, common.json));
  return out.end() ? exit_ok : exit_failure;
}

int run_definitions_import(const Common& common, const DefinitionsImport& asked) {
  const auto text = text_of_file(asked.file);
  if (!text) return fail(text.error());
  const auto wanted = parse_definitions(*text);
  if (!wanted) return fail({wanted.error().code, "'" + asked.file + "': " + wanted.error().message});
  Result<Client> client = open_client(common);
  if (!client) return fail(client.error());
  bool sees_users = true;
  const auto present = definitions_of(*client, sees_users);
  if (!present) return fail(present.error());
  if (!sees_users && !wanted->users.empty())
    return fail(
        {ErrorCode::unauthorized_access, "the document has users: only an administrator may add them"});
  const std::vector<DefinitionsStep> steps = steps_to(*wanted, *present);
  const bool is_whole =
      std::ranges::find(steps, DefinitionsStep::What::conflict, &DefinitionsStep::what) == steps.end();
  std::vector<DefinitionsStep> done;
  for (const DefinitionsStep& step : steps) {
    const Result<void> result = asked.preview ? Result<void>() : execute(*client, step);
    if (!result) {
      print_steps(common, done, asked.preview, false);
      return fail({result.error().code, step.text + ": " + result.error().message}, step.topic);
    }
    done.push_back(step);
  }
  const bool is_printed = print_steps(common, done, asked.preview, is_whole);
  return is_printed && is_whole ? exit_ok : exit_failure;
}

}  // namespace lightq::cli
