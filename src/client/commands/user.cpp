/// `lightq user add|remove|password|grant|revoke|list`. Layer: cli.
#include <algorithm>

#include <lightq/base/shown_text.hpp>
#include <lightq/base/shown_uri.hpp>
#include <lightq/protocol/json.hpp>

#include "client/confirmation.hpp"
#include "client/invocation.hpp"
#include "client/json_text.hpp"
#include "client/password_prompt.hpp"
#include "client/session.hpp"
#include "client/terminal.hpp"
#include "client/text/text_table.hpp"

namespace lightq::cli {
namespace {

using protocol::Rights;
using protocol::TopicRight;

/// Returns one entry for each pattern, in the order of the command line.
std::vector<TopicRight> rights_of(const UserCommand& user) {
  std::vector<TopicRight> rights;
  const auto add = [&](const std::vector<std::string>& patterns, bool Rights::* word) {
    for (const std::string& pattern : patterns) {
      auto found = std::ranges::find(rights, pattern, &TopicRight::topic);
      if (found == rights.end()) found = rights.insert(found, TopicRight{pattern, {}});
      found->rights.*word = true;
    }
  };
  add(user.produce, &Rights::produce);
  add(user.consume, &Rights::consume);
  add(user.manage, &Rights::manage);
  return rights;
}

std::string words_of(const Rights& rights) {
  std::string words;
  const auto add = [&](bool has, const char* word) {
    if (has) words += (words.empty() ? "" : ",") + std::string(word);
  };
  add(rights.produce, "produce");
  add(rights.consume, "consume");
  add(rights.manage, "manage");
  return words;
}

/// Ends a command and returns its exit code. Prints a sentence for people, or for scripts a document like the
/// broker's reply to `cmd`.
int done(const Common& common, const Result<void>& result, const std::string& cmd, const std::string& name,
         const std::string& what) {
  if (!result) return fail(result.error());
  if (!common.json) {
    if (!common.quiet) say("user '" + without_controls(shown_user(name)) + "' " + what);
    return exit_ok;
  }
  Output out;
  out.write(JsonObject().add("cmd", cmd).add("status", "ok").add("user_id", name).text() + "\n");
  return out.end() ? exit_ok : exit_failure;
}

/// Sends one request for each pattern; stops at the first that fails.
template <typename Change>
int change_rights(const Common& common, const UserCommand& user, const std::string& cmd,
                  const std::string& what, Change&& change) {
  Result<Client> client = open_client(common);
  if (!client) return fail(client.error());
  for (const TopicRight& right : rights_of(user)) {
    if (const Result<void> changed = change(*client, right); !changed) {
      Error error = changed.error();
      error.message = "pattern '" + right.topic + "': " + error.message;
      return fail(error);
    }
  }
  return done(common, {}, cmd, user.name, what);
}

}  // namespace

int run_user_add(const Common& common, const UserCommand& user) {
  Result<Client> client = open_client(common);
  if (!client) return fail(client.error());
  const Result<Secret> password =
      user.uid && user.new_password_file.empty()
          ? Result<Secret>(Secret())
          : new_password(user.new_password_file, common.secrets->take("LIGHTQ_NEW_PASSWORD"));
  if (!password) return fail(password.error());
  const Result<void> made =
      client->create_user(user.name, password->expose(), rights_of(user), user.admin, user.uid);
  return done(common, made, "create_user", user.name,
              user.admin ? "is created, as an administrator" : "is created");
}

int run_user_remove(const Common& common, const UserCommand& user) {
  if (!is_confirmed(common, user.yes, "remove user '" + without_controls(shown_user(user.name)) + "'"))
    return exit_failure;
  Result<Client> client = open_client(common);
  if (!client) return fail(client.error());
  return done(common, client->delete_user(user.name), "delete_user", user.name, "is removed");
}

int run_user_password(const Common& common, const UserCommand& user) {
  Result<Client> client = open_client(common);
  if (!client) return fail(client.error());
  const Result<Secret> password =
      new_password(user.new_password_file, common.secrets->take("LIGHTQ_NEW_PASSWORD"));
  if (!password) return fail(password.error());
  const Result<void> set = user.topic.empty() ? client->set_password(user.name, password->expose())
                                              : client->set_topic_password(user.topic, password->expose());
  return done(common, set, "set_password", user.name, "has a new password");
}

int run_user_grant(const Common& common, const UserCommand& user) {
  return change_rights(
      common, user, "grant", "has these rights now",
      [&](Client& client, const TopicRight& right) { return client.grant(user.name, right); });
}

int run_user_revoke(const Common& common, const UserCommand& user) {
  return change_rights(
      common, user, "revoke", "no longer has these rights",
      [&](Client& client, const TopicRight& right) { return client.revoke(user.name, right); });
}

int run_user_list(const Common& common) {
  Result<Client> client = open_client(common);
  if (!client) return fail(client.error());
  Result<std::vector<protocol::UserListing>> users = client->list_users();
  if (!users) return fail(users.error());
  Output out;
  if (common.json) {
    out.write(protocol::to_json(protocol::Reply(protocol::UserListReply{std::move(*users)})) + "\n");
    return out.end() ? exit_ok : exit_failure;
  }
  if (users->empty() && !common.quiet)
    say("no users yet; create one:  lightq user add NAME --consume 'orders*'");
  TextTable table({{"user"}, {"role"}, {"uid", true}, {"rights"}});
  for (const protocol::UserListing& user : *users) {
    if (out.is_terminal()) {
      std::string rights;
      for (const TopicRight& right : user.rights)
        rights += (rights.empty() ? "" : " ") + without_controls(right.topic) + "=" + words_of(right.rights);
      table.add({without_controls(user.user_id), user.admin ? "admin" : "-",
                 user.uid ? std::to_string(*user.uid) : "-", rights});
      continue;
    }
    std::string line = without_controls(user.user_id) + (user.admin ? "\tadmin" : "\t-");
    if (user.uid) line += "\tuid " + std::to_string(*user.uid);
    for (const TopicRight& right : user.rights)
      line += "\t" + without_controls(right.topic) + "=" + words_of(right.rights);
    out.write(line + "\n");
  }
  if (!table.is_empty()) out.write(table.text());
  return out.end() ? exit_ok : exit_failure;
}

}  // namespace lightq::cli
