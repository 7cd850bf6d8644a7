/// `lightq context add|use|list|remove`: names brokers. Layer: cli.
#include <filesystem>
#include <string>

#include <lightq/base/shown_uri.hpp>

#include "client/contexts/context_file.hpp"
#include "client/invocation.hpp"
#include "client/json_text.hpp"
#include "client/session.hpp"
#include "client/terminal.hpp"
#include "client/text/text_table.hpp"

namespace lightq::cli {
namespace {

/// Ends a command: prints the result and returns the exit code.
int done(const Common& common, const Result<void>& result, const std::string& cmd, const std::string& name,
         const std::string& what) {
  if (!result) return fail(result.error());
  if (!common.json) {
    if (!common.quiet) say("context '" + name + "' " + what);
    return exit_ok;
  }
  return print(JsonObject().add("cmd", cmd).add("status", "ok").add_bytes("context", name).text() + "\n");
}

int no_such(const std::string& name) {
  return fail({ErrorCode::invalid_argument, "there is no context '" + name + "'; see  lightq context list"});
}

/// Returns the path from the root, because the command may run elsewhere next time.
std::string whole_path(const std::string& path) {
  if (path.empty()) return path;
  std::error_code fault;
  const std::filesystem::path whole = std::filesystem::absolute(path, fault);
  return fault ? path : whole.lexically_normal().string();
}

}  // namespace

Result<Common> with_context(const Common& common) {
  const bool is_named = !common.context.empty();
  if (!is_named && (!common.broker.empty() || !common.data_dir.empty())) return common;
  const Result<Contexts> contexts = read_contexts();
  if (!contexts) return contexts.error();
  const std::string& name = is_named ? common.context : contexts->current;
  if (name.empty()) return common;
  const auto found = contexts->named.find(name);
  if (found == contexts->named.end())
    return Error{ErrorCode::invalid_argument, "there is no context '" + name + "'; see  lightq context list"};
  const Context& context = found->second;
  // Else the context's password would go to another broker, or a command to one that is not meant.
  const bool names_other_broker = !common.broker.empty() && common.broker != context.broker;
  const bool names_other_place =
      context.broker.empty() && !common.data_dir.empty() && common.data_dir != context.data_dir;
  if (names_other_broker || names_other_place)
    return Error{
        ErrorCode::invalid_argument,
        "context '" + name +
            "' and --broker, --data-dir or their variables name different brokers; give one of them"};
  Common used = common;
  const auto fill = [](std::string& field, const std::string& value) {
    if (field.empty()) field = value;
  };
  const bool has_other_user = !common.user.empty() || !common.admin_user.empty();
  fill(used.broker, context.broker);
  fill(used.data_dir, context.data_dir);
  fill(used.server_key, context.server_key);
  fill(used.client_key_file, context.client_key_file);
  if (!has_other_user) {
    fill(used.user, context.user);
    fill(used.password_file, context.password_file);
  }
  return used;
}

int run_context_add(const Common& common, const std::string& name) {
  if (name.empty() || !is_utf8(name) || common.broker.empty() + common.data_dir.empty() == 2)
    return fail({ErrorCode::invalid_argument, "a context has a name, and --broker URI or --data-dir DIR"});
  if (shown_uri(common.broker) != common.broker)
    return fail(
        {ErrorCode::invalid_argument,
         "the address of a broker must not contain a user or password; give --user and --password-file"});
  Result<Contexts> contexts = read_contexts();
  if (!contexts) return fail(contexts.error());
  contexts->named[name] = {.broker = common.broker,
                           .user = common.user,
                           .password_file = whole_path(common.password_file),
                           .server_key = common.server_key,
                           .client_key_file = whole_path(common.client_key_file),
                           .data_dir = whole_path(common.data_dir)};
  return done(common, write_contexts(*contexts), "context_add", name,
              "is kept in " + contexts_path().string() + "; use it:  lightq context use " + name);
}

int run_context_use(const Common& common, const std::string& name) {
  Result<Contexts> contexts = read_contexts();
  if (!contexts) return fail(contexts.error());
  if (!name.empty() && !contexts->named.contains(name)) return no_such(name);
  contexts->current = name;
  return done(common, write_contexts(*contexts), "context_use", name, "is used now");
}

int run_context_remove(const Common& common, const std::string& name) {
  Result<Contexts> contexts = read_contexts();
  if (!contexts) return fail(contexts.error());
  if (contexts->named.erase(name) == 0) return no_such(name);
  if (contexts->current == name) contexts->current.clear();
  return done(common, write_contexts(*contexts), "context_remove", name, "is removed");
}

int run_context_list(const Common& common) {
  const Result<Contexts> contexts = read_contexts();
  if (!contexts) return fail(contexts.error());
  TextTable table({{"used"}, {"name"}, {"broker"}, {"user"}});
  JsonArray list;
  for (const auto& [name, context] : contexts->named) {
    const bool is_used = name == contexts->current;
    const std::string place = context.broker.empty() ? context.data_dir : context.broker;
    table.add({is_used ? "*" : "", name, place, context.user.empty() ? "-" : context.user});
    list.add(JsonObject()
                 .add_bytes("name", name)
                 .add("used", is_used)
                 .add_bytes("broker", context.broker)
                 .add_bytes("user", context.user)
                 .add_bytes("password_file", context.password_file)
                 .add_bytes("server_key", context.server_key)
                 .add_bytes("client_key_file", context.client_key_file)
                 .add_bytes("data_dir", context.data_dir)
                 .text());
  }
  if (common.json)
    return print(
        JsonObject().add("cmd", "context_list").add("status", "ok").add_raw("contexts", list.text()).text() +
        "\n");
  if (table.is_empty()) {
    if (!common.quiet)
      say("no contexts yet; add one:  lightq context add NAME --broker tcp://HOST:PORT --user USER");
    return exit_ok;
  }
  Output out;
  out.write(out.is_terminal() ? table.text() : table.tab_separated());
  return out.end() ? exit_ok : exit_failure;
}

}  // namespace lightq::cli
