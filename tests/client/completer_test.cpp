/// Tests of completions, and of the manual pages' text, with a small table of commands.
#include "client/help/completer.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "client/help/manual_page.hpp"
#include "client/help/shell_script.hpp"

namespace lightq::cli {
namespace {

using Words = std::vector<std::string>;

FlagEntry flag_of(const std::string& name, const std::string& value) {
  FlagEntry flag;
  flag.names = {name};
  flag.value = value;
  flag.help = "a flag";
  return flag;
}

CommandEntry command_of(const std::string& words, std::vector<ArgumentEntry> arguments) {
  CommandEntry command;
  command.words = words;
  command.help = "does " + words;
  command.arguments = std::move(arguments);
  return command;
}

CommandEntry small_program() {
  CommandEntry program;
  CommandEntry topic = command_of("topic", {});
  topic.commands = {command_of("topic create", {{"TOPIC", "a name", true, false}}),
                    command_of("topic list", {})};
  topic.commands[0].flags = {flag_of("--type", "queue|file|FORMAT"), flag_of("--open", ""),
                             flag_of("--broker", "URI")};
  CommandEntry produce = command_of("produce", {{"TOPIC", "", true, false}, {"FILE", "", false, true}});
  produce.aliases = {"pub"};
  CommandEntry consume = command_of("consume", {{"TOPIC", "", true, false}});
  consume.flags = {flag_of("--group", "NAME"), flag_of("--key-file", "FILE")};
  CommandEntry user = command_of("user", {});
  user.commands = {command_of("user add", {{"NAME", "", true, false}}),
                   command_of("user remove", {{"NAME", "", true, false}})};
  program.commands = {topic, produce, consume, user};
  return program;
}

CommandEntry program_with_other_names() {
  CommandEntry program;
  CommandEntry schedule = command_of("schedule", {});
  schedule.commands = {command_of("schedule show", {{"NAME", "", true, false}, {"TOPIC", "", true, false}})};
  CommandEntry verify = command_of("verify", {{"DIR|TOPIC", "", true, false}});
  verify.flags = {flag_of("--context", "CONTEXT")};
  CommandEntry man = command_of("man", {{"COMMAND", "", false, false}});
  program.commands = {schedule, verify, man};
  return program;
}

/// The names that the broker of these tests has.
Words names_of(NameKind kind, const std::string& topic) {
  if (kind == NameKind::groups) return {"of-" + topic};
  if (kind == NameKind::users) return {"ann"};
  if (kind == NameKind::schedules) return {"morning"};
  if (kind == NameKind::contexts) return {"prod"};
  return {"orders", "other", "$(reboot)", "-n", "a b", "tab\there", ""};
}

Words completed(const Words& typed, const CommandEntry& program = small_program()) {
  Words words;
  const Completions found = complete(program, typed, names_of);
  for (const Completions::Word& word : found.words) words.push_back(word.text);
  if (found.files) words.emplace_back(":files");
  return words;
}

TEST(Completer, CompletesCommandsAndFlags) {
  EXPECT_EQ(completed({}), (Words{"topic", "produce", "consume", "user"}));
  EXPECT_EQ(completed({""}), (Words{"topic", "produce", "consume", "user"}));
  EXPECT_EQ(completed({"pro"}), Words{"produce"});
  EXPECT_EQ(completed({"topic", ""}), (Words{"create", "list"}));
  EXPECT_EQ(completed({"topic", "create", "-"}), (Words{"--type", "--open", "--broker", "--help"}));
  EXPECT_EQ(completed({"topic", "create", "--o"}), Words{"--open"});
  EXPECT_EQ(completed({"nonsense", "--f"}), Words{});
}

TEST(Completer, CompletesTheValuesOfFlags) {
  EXPECT_EQ(completed({"topic", "create", "--type", ""}), (Words{"queue", "file"}));
  EXPECT_EQ(completed({"topic", "create", "--type=f"}), Words{"--type=file"});
  EXPECT_EQ(completed({"topic", "create", "--type", "=", "f"}), Words{"--type=file"}) << "as bash splits it";
  EXPECT_EQ(completed({"topic", "create", "--type", "file", ""}), (Words{"orders", "other"}));
  EXPECT_EQ(completed({"topic", "create", "--open", "or"}), Words{"orders"});
  EXPECT_EQ(completed({"consume", "--key-file", ""}), Words{":files"});
}

TEST(Completer, CompletesNamesThatAreWordsForEveryShell) {
  EXPECT_EQ(completed({"consume", ""}), (Words{"orders", "other"}));
  EXPECT_EQ(completed({"pub", "ord"}), Words{"orders"});
  EXPECT_EQ(completed({"produce", "orders", ""}), Words{":files"});
  EXPECT_EQ(completed({"produce", "orders", "a", ""}), Words{":files"});
  EXPECT_EQ(completed({"consume", "orders", "--group", ""}), Words{"of-orders"});
  EXPECT_EQ(completed({"consume", "--group", ""}), Words{}) << "of no topic";
  EXPECT_EQ(completed({"user", "remove", ""}), Words{"ann"});
  EXPECT_EQ(completed({"user", "add", ""}), Words{}) << "a new name";
  EXPECT_EQ(completed({"consume", "--", "-"}), Words{});
}

TEST(Completer, CompletesSchedulesContextsCommandsAndLogs) {
  const CommandEntry program = program_with_other_names();
  EXPECT_EQ(completed({"schedule", "show", ""}, program), Words{"morning"});
  EXPECT_EQ(completed({"schedule", "show", "morning", "or"}, program), Words{"orders"});
  EXPECT_EQ(completed({"verify", "--context", "p"}, program), Words{"prod"});
  EXPECT_EQ(completed({"verify", "or"}, program), (Words{"orders", ":files"}));
  EXPECT_EQ(completed({"man", "ver"}, program), Words{"verify"});
}

TEST(Completer, FindsTheFlagsOfTheConnectionOnTheCommandLine) {
  const auto values =
      typed_values(small_program(), {"topic", "create", "--broker", "tcp://h:1", "--open", ""});
  ASSERT_EQ(values.size(), 1U);
  EXPECT_EQ(values[0], (std::pair<std::string, std::string>("--broker", "tcp://h:1")));
  EXPECT_EQ(typed_values(small_program(), {"topic", "create", "--broker=x", ""})[0].second, "x");
  EXPECT_TRUE(typed_values(small_program(), {"topic", "create", "--broker"}).empty());
}

TEST(Completer, HasAScriptForEachShell) {
  for (const char* shell : {"bash", "zsh", "fish"})
    EXPECT_NE(shell_script(shell).find("completion words"), std::string::npos) << shell;
}

TEST(ManualPage, EscapesWhatTheFormatterTakesForCommands) {
  CommandEntry program = small_program();
  program.commands[0].help = ".SH is no 'command' here \\ and - is no hyphen, \"µ\"";
  const auto pages = manual_pages(program);
  ASSERT_EQ(pages.size(), 5U);
  EXPECT_EQ(pages[0].file, "lightq.1");
  EXPECT_EQ(pages[1].file, "lightq-topic.1");
  EXPECT_NE(pages[1].text.find(
                "\n\\&.SH is no \\(aqcommand\\(aq here \\e and \\- is no hyphen, \\(dq\\[u00B5]\\(dq\n"),
            std::string::npos)
      << pages[1].text;
}

}  // namespace
}  // namespace lightq::cli
