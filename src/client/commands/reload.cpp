/// `lightq reload`. Layer: cli.
#include <string>
#include <vector>

#include <lightq/base/shown_text.hpp>
#include <lightq/protocol/json.hpp>

#include "client/invocation.hpp"
#include "client/session.hpp"
#include "client/terminal.hpp"

namespace lightq::cli {

namespace {

std::string names_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    if (!text.empty()) text += ", ";
    append_escaping_controls(text, name);
  }
  return text;
}

}  // namespace

int run_reload(const Common& common) {
  Result<Client> client = open_client(common);
  if (!client) return fail(client.error());
  Result<protocol::ReloadReply> reloaded = BrokerControl::of(*client).reload();
  if (!reloaded) return fail(reloaded.error());
  Output out;
  if (common.json) {
    out.write(protocol::to_json(protocol::Reply(std::move(*reloaded))) + "\n");
    return out.end() ? exit_ok : exit_failure;
  }
  out.write(reloaded->changed.empty() ? "nothing has changed\n"
                                      : "changed: " + names_of(reloaded->changed) + "\n");
  if (!reloaded->needs_restart.empty())
    out.write("needs a restart: " + names_of(reloaded->needs_restart) + "\n");
  return out.end() ? exit_ok : exit_failure;
}

}  // namespace lightq::cli
