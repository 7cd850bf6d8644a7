/// Tests of the help at several widths, with all commands of the program.
#include "client/help/help_text.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "broker/config.hpp"
#include "client/parser/command_line.hpp"
#include "client/text/wrapped_text.hpp"

namespace lightq::cli {
namespace {

const CommandEntry& program() {
  static const CommandEntry root = [] {
    BrokerCommand broker;
    for (const broker::Setting& setting : broker::settings())
      broker.flags.push_back({setting.name, broker::environment_name(setting), setting.value, setting.help});
    broker.run = [](const auto&, const auto&) { return 0; };
    return list_commands(broker);
  }();
  return root;
}

void for_each_command(const CommandEntry& command, const std::function<void(const CommandEntry&)>& use) {
  use(command);
  for (const CommandEntry& each : command.commands) for_each_command(each, use);
}

std::size_t words_in(std::string_view text) {
  std::istringstream words{std::string(text)};
  return static_cast<std::size_t>(
      std::distance(std::istream_iterator<std::string>(words), std::istream_iterator<std::string>()));
}

TEST(HelpText, FitsTheWidthAndSplitsNoWord) {
  for (const std::size_t columns : {40U, 60U, 80U, 100U, 120U}) {
    for_each_command(program(), [&](const CommandEntry& command) {
      std::istringstream lines(help_text(command, columns));
      for (std::string line; std::getline(lines, line);) {
        if (columns_of(line) <= columns) continue;
        const bool of_one_word = words_in(line) == 1 || (line.ends_with(" \\") && words_in(line) == 2);
        const bool is_quoted = line.find('\'') != std::string::npos && line.starts_with("  ");
        const bool names_a_flag = line.starts_with("  -") && words_in(line) <= 4;
        EXPECT_TRUE(of_one_word || is_quoted || names_a_flag)
            << command.words << " at " << columns << ": " << line;
      }
    });
  }
}

TEST(HelpText, FitsTheUsualWidthWithoutExceptions) {
  for_each_command(program(), [&](const CommandEntry& command) {
    std::istringstream lines(help_text(command, 80));
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(columns_of(line), 80U) << command.words << line;
  });
}

TEST(HelpText, ShowsTheFlagsOfTheConnectionOnce) {
  const auto shows = [](const std::string& help) {
    return help.find("--admin-password-file FILE") != help.npos;
  };
  std::size_t commands = 0;
  for_each_command(program(), [&](const CommandEntry& command) {
    if (command.words.starts_with("broker")) return;  // its own --admin-password-file
    EXPECT_FALSE(shows(help_text(command, 80))) << command.words;
    if (std::ranges::find(command.flags, connection_group, &FlagEntry::group) == command.flags.end()) return;
    ++commands;
    EXPECT_NE(help_text(command, 80).find("lightq help connection"), std::string::npos) << command.words;
    EXPECT_TRUE(shows(connection_help(command, 80))) << command.words;
  });
  EXPECT_GT(commands, 20U);
}

TEST(HelpText, GroupsCommandsAndSettings) {
  std::set<std::string> headings;
  for (const CommandEntry& command : program().commands) headings.insert(command.group);
  EXPECT_FALSE(headings.contains("Others"));
  for_each_command(program(), [](const CommandEntry& command) {
    for (const std::string& group : flag_groups(command))
      EXPECT_LE(std::ranges::count(command.flags, group, &FlagEntry::group), 26)
          << command.words << ": " << group;
  });
}

TEST(HelpText, NamesAVariableOnlyIfItsNameIsNotThatOfTheFlag) {
  CommandEntry command{.words = "c", .help = "does something"};
  command.flags = {{.names = {"-n", "--count"}, .value = "N", .help = "how many", .variable = "LIGHTQ_COUNT"},
                   {.names = {"--all"}, .help = "all", .variable = "LIGHTQ_ALL_DELAYED"}};
  const std::string help = help_text(command, 80);
  EXPECT_NE(help.find("-n, --count N"), std::string::npos);
  EXPECT_EQ(help.find("LIGHTQ_COUNT"), std::string::npos);
  EXPECT_NE(help.find("[LIGHTQ_ALL_DELAYED]"), std::string::npos);
}

}  // namespace
}  // namespace lightq::cli
