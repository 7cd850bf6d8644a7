/// `lightq group set`. Layer: cli.
#include "client/invocation.hpp"
#include "client/json_text.hpp"
#include "client/session.hpp"
#include "client/terminal.hpp"

namespace lightq::cli {

int run_group_set(const Common& common, const GroupSet& set) {
  Result<Client> client = open_client(common);
  if (!client) return fail(client.error());
  Result<GroupControl> group = client->group(set.topic, set.group);
  if (!group) return fail(group.error(), set.topic);
  if (const Result<void> changed = group->set(set.change); !changed) {
    const bool about_target = changed.error().message.starts_with("dead_letter_topic:");
    return fail(changed.error(), about_target ? set.target : set.topic);
  }
  if (!common.json) {
    if (!common.quiet) say("topic '" + set.topic + "' group '" + set.group + "' has these settings now");
    return exit_ok;
  }
  Output out;
  out.write(JsonObject()
                .add("cmd", "set_group")
                .add("status", "ok")
                .add("topic", set.topic)
                .add("group", set.group)
                .text() +
            "\n");
  return out.end() ? exit_ok : exit_failure;
}

}  // namespace lightq::cli
