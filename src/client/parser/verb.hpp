/// Makes the parser's commands: with the flags of the connection, and with examples. Included only by
/// command_line.cpp, like command_options.hpp. Layer: cli.
#pragma once

#include <string>

#include "client/parser/command_options.hpp"
#include "client/units.hpp"

namespace lightq::cli {

/// Adds the flags of every command that talks to a broker.
inline void add_common(CLI::App* app, Common& common) {
  const std::string group(connection_group);
  const auto text = [&](const char* name, std::string& value, const char* help, const char* type) {
    text_option(app, name, value, help, type)->group(group);
  };
  text("--context", common.context,
       "broker that  lightq context add  has named; else the one in use, unless --broker or "
       "--data-dir is given",
       "CONTEXT");
  text("--broker", common.broker, "control URI; else that in broker.json, else tcp://127.0.0.1:5000", "URI");
  text("--user", common.user, "user that sends the request; else the administrator of this machine's broker",
       "NAME");
  text("--password-file", common.password_file, "file with the user's password; else LIGHTQ_PASSWORD",
       "FILE");
  text("--admin-user", common.admin_user,
       "administrator; else that of this machine's broker, unless --user is given", "NAME");
  text("--admin-password-file", common.admin_password_file,
       "file with that password; else LIGHTQ_ADMIN_PASSWORD, else admin.json in the data directory", "FILE");
  text("--server-key", common.server_key,
       "public key of an encrypting broker; else that in broker.json of this machine's broker", "KEY");
  text("--client-key-file", common.client_key_file,
       "this client's key, for a broker that accepts only listed keys: see  lightq key new", "FILE");
  flag(app, "--insecure", common.insecure, "permit unencrypted passwords and tickets to other machines")
      ->group(group);
  text("--data-dir", common.data_dir,
       "directory in which this machine's broker keeps broker.json and admin.json", "DIR");
  unit_option(app, "--request-timeout", common.request_timeout, parse_wait,
              "how long to wait for a reply; a busy broker is asked again during this time (5s)", "TIME")
      ->group(group);
  add_output_flags(app, common);
}

/// Adds a command that talks to a broker, or prints as such commands do. `name`: one word.
inline CLI::App* add_verb(CLI::App* app, Parsed& parsed, const std::string& name, const std::string& help,
                          const std::string& examples) {
  CLI::App* verb = app->add_subcommand(name, help);
  verb->footer("Examples:\n" + examples + "\n\nExit codes: 0 ok, 1 failed, 2 wrong usage.");
  verb->set_help_flag("-h,--help", "show this text");
  // All verbs write to the same options. With its own callback, only the verb in use reads the environment,
  // so that no other verb overwrites its flags.
  verb->parse_complete_callback([] {});
  add_common(verb, parsed.common);
  return verb;
}

inline void topic_argument(CLI::App* verb, std::string& topic) {
  verb->add_option("topic", topic, "the topic's name")->required()->type_name("TOPIC");
}

/// Adds a command with verbs of its own, which `add_verbs(parsed, add)` adds.
template <typename AddVerbs>
void add_family(CLI::App* app, Parsed& parsed, const char* name, const char* help, const char* examples,
                AddVerbs&& add_verbs) {
  CLI::App* const family = app->add_subcommand(name, help);
  family->set_help_flag("-h,--help", "show this text");
  family->require_subcommand(1);
  family->footer(std::string("Examples:\n") + examples);
  add_verbs(parsed, [&](const char* verb, const char* verb_help, const char* verb_examples) {
    return add_verb(family, parsed, verb, verb_help, verb_examples);
  });
}

}  // namespace lightq::cli
