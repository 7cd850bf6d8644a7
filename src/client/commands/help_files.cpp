/// `lightq completion` and `lightq man`: completions for shells, and manual pages. Layer: cli.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "client/contexts/context_file.hpp"
#include "client/help/completer.hpp"
#include "client/help/manual_page.hpp"
#include "client/help/shell_script.hpp"
#include "client/invocation.hpp"
#include "client/session.hpp"
#include "client/terminal.hpp"

namespace lightq::cli {
namespace {

/// Applies the flags of the connection that are on the command line that is being completed.
Common with_typed_flags(const Common& common, const CommandEntry& program,
                        const std::vector<std::string>& typed) {
  Common used = common;
  const std::vector<std::pair<std::string, std::string*>> texts = {
      {"--context", &used.context},
      {"--broker", &used.broker},
      {"--user", &used.user},
      {"--password-file", &used.password_file},
      {"--admin-user", &used.admin_user},
      {"--admin-password-file", &used.admin_password_file},
      {"--server-key", &used.server_key},
      {"--client-key-file", &used.client_key_file},
      {"--data-dir", &used.data_dir}};
  for (auto& [name, value] : typed_values(program, typed))
    for (const auto& [flag, text] : texts)
      if (name == flag) *text = value;
  used.quiet = true;
  used.request_timeout = std::min(used.request_timeout, Timeout(1000));  // somebody waits for the Tab key
  return used;
}

std::vector<std::string> names_of_contexts() {
  std::vector<std::string> names;
  if (const auto contexts = read_contexts(); contexts)
    for (const auto& [name, context] : contexts->named) names.push_back(name);
  return names;
}

std::vector<std::string> names_of_schedules(Client& client) {
  std::vector<std::string> names;
  auto schedules = ScheduleControl::of(client, "");
  if (!schedules) return names;
  if (const auto page = schedules->list(SchedulePage().continue_after, SchedulePage::schedules_max); page)
    for (const ScheduleListing& each : page->schedules) names.push_back(each.name);
  return names;
}

/// Asks the broker for names. Returns none if anything fails.
std::vector<std::string> names_from_broker(const Common& common, NameKind kind, const std::string& topic) {
  if (kind == NameKind::contexts) return names_of_contexts();
  std::vector<std::string> names;
  Result<Client> client = open_client(common);
  if (!client) return names;
  if (kind == NameKind::topics) {
    if (const auto topics = client->list_topics(); topics)
      for (const TopicListing& each : *topics) names.push_back(each.topic);
  } else if (kind == NameKind::groups) {
    if (const auto stats = client->stats(topic); stats)
      for (const GroupStats& each : stats->groups) names.push_back(each.group);
  } else if (kind == NameKind::schedules) {
    names = names_of_schedules(*client);
  } else if (const auto users = client->list_users(); users) {
    for (const protocol::UserListing& each : *users) names.push_back(each.user_id);
  }
  return names;
}

/// Writes a file anew. Returns 0, or the number of the error.
bool write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  return file.good();
}

}  // namespace

int run_completion_script(const std::string& shell) {
  return print(shell_script(shell));
}

int run_completion_words(const Common& common, const CommandEntry& program,
                         const std::vector<std::string>& typed) {
  const Common used = with_typed_flags(common, program, typed);
  const Completions found = complete(program, typed, [&](NameKind kind, const std::string& topic) {
    return names_from_broker(used, kind, topic);
  });
  std::string lines;
  for (const Completions::Word& word : found.words)
    lines += word.text + (word.help.empty() ? "" : "\t" + word.help) + "\n";
  if (found.files) lines += ":files\n";
  return lines.empty() ? int{exit_ok} : print(lines);
}

int run_man(const CommandEntry& program, const std::string& command, const std::string& directory) {
  const std::vector<ManualPage> pages = manual_pages(program);
  if (directory.empty()) {
    const std::string file = command.empty() ? "lightq.1" : "lightq-" + command + ".1";
    const auto page = std::ranges::find(pages, file, &ManualPage::file);
    if (page != pages.end()) return print(page->text);
    say("there is no command '" + command + "'; see  lightq --help");
    return exit_usage;
  }
  std::error_code fault;
  std::filesystem::create_directories(directory, fault);
  for (const ManualPage& page : pages) {
    if (write_file(std::filesystem::path(directory) / page.file, page.text)) continue;
    say("cannot write '" + page.file + "' in '" + directory + "'");
    return exit_failure;
  }
  return exit_ok;
}

}  // namespace lightq::cli
