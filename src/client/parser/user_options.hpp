/// The flags of `lightq user`. Included only by command_line.cpp, like command_options.hpp. Layer: cli.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/parser/command_options.hpp"

namespace lightq::cli {

inline constexpr std::array<std::string_view, 6> user_verbs = {"add",   "remove", "password",
                                                               "grant", "revoke", "list"};

inline void add_right_options(CLI::App* verb, UserCommand& user) {
  const auto patterns = [verb](const char* name, std::vector<std::string>& to, const char* help) {
    verb->add_option(name, to, help)
        ->envname(variable_of(long_name(name)))
        ->type_name("PATTERN")
        ->take_all()
        ->allow_extra_args(false);
  };
  patterns("--produce", user.produce, "may send to topics with a matching name; repeat for more patterns");
  patterns("--consume", user.consume,
           "may receive from matching topics; with TOPIC:GROUP only in matching groups");
  patterns(
      "--manage", user.manage,
      "may create, delete, pause, resume and purge matching topics; with TOPIC:GROUP only matching groups");
}

inline void add_new_password_option(CLI::App* verb, UserCommand& user) {
  text_option(verb, "--new-password-file", user.new_password_file,
              "file with the new password; else LIGHTQ_NEW_PASSWORD, else a prompt", "FILE");
}

/// Adds the verbs of `user`. `add(name, help, examples)` makes a verb with the flags that all verbs have.
template <typename Add>
void add_user_verbs(Parsed& parsed, Add&& add) {
  using Run = int (*)(const Common&, const UserCommand&);
  const auto verb = [&](const char* name, Run run, const char* help, const char* examples) {
    auto user = std::make_shared<UserCommand>();
    CLI::App* const made = add(name, help, examples);
    made->add_option("name", user->name, "the user's name")->required()->type_name("NAME");
    made->callback([&parsed, user, run] {
      const bool of_rights = run == run_user_grant || run == run_user_revoke;
      if (of_rights && user->produce.empty() && user->consume.empty() && user->manage.empty())
        throw CLI::ValidationError("rights",
                                   "give at least one of --produce, --consume and --manage PATTERN");
      parsed.command = [&parsed, user, run] { return run(parsed.common, *user); };
    });
    return std::pair(made, user.get());
  };
  const auto [made, user] = verb("add", run_user_add, "create a user",
                                 "  lightq user add ann --produce 'orders.*' --consume '*.eu'\n"
                                 "  lightq user add chief --admin --new-password-file secret.txt");
  add_right_options(made, *user);
  flag(made, "--admin", user->admin, "may do everything that the administrator may do");
  made->add_option("--uid", user->uid,
                   "id of a user of this machine: its processes need no password on an ipc socket")
      ->envname(variable_of("uid"))
      ->type_name("UID");
  add_new_password_option(made, *user);
  const auto [remove, removed] =
      verb("remove", run_user_remove, "delete a user and end its connections and sessions",
           "  lightq user remove ann");
  add_yes(remove, removed->yes);
  const auto [set, whose] =
      verb("password", run_user_password, "set a new password; tickets of the old password end",
           "  lightq user password ann\n  lightq user password billing --topic orders");
  text_option(set, "--topic", whose->topic, "change the password of this topic's own user", "TOPIC");
  add_new_password_option(set, *whose);
  const auto [grant, to] = verb("grant", run_user_grant, "grant rights to a user",
                                "  lightq user grant ann --consume orders --manage 'orders.*'\n"
                                "  lightq user grant audit --consume 'orders:audit'");
  add_right_options(grant, *to);
  const auto [revoke, from] =
      verb("revoke", run_user_revoke,
           "revoke rights of a user, and end the connections and sessions that need them",
           "  lightq user revoke ann --consume orders");
  add_right_options(revoke, *from);
  CLI::App* const list = add("list", "list all users and their rights", "  lightq user list");
  list->callback([&parsed] { parsed.command = [&parsed] { return run_user_list(parsed.common); }; });
}

}  // namespace lightq::cli
