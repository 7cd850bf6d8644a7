/// Tests of the parser's flags, and of the environment variables and settings that belong to them.
#include "client/parser/command_line.hpp"

#include <stdlib.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <lightq/client_key_file.hpp>

#include "broker/config.hpp"
#include "support/temp_dir.hpp"

namespace lightq::cli {
namespace {

using Overrides = std::map<std::string, std::string>;

/// The broker's command as in the program. It keeps the settings that it is run with.
struct FakeBroker {
  FakeBroker() {
    for (const broker::Setting& setting : broker::settings()) {
      command.flags.push_back({setting.name, broker::environment_name(setting), setting.value, setting.help});
    }
    command.run = [this](const Overrides& given, const std::optional<std::string>& named) {
      overrides = given;
      file = named;
      return 0;
    };
  }
  BrokerCommand command;
  Overrides overrides;
  std::optional<std::string> file;
};

int run(const FakeBroker& broker, std::vector<std::string> arguments) {
  unsetenv("LIGHTQ_SECRETS_FILE");  // set by the test suite itself
  arguments.insert(arguments.begin(), "lightq");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  return run_command_line(static_cast<int>(argv.size()), argv.data(), broker.command);
}

/// Returns for example `LIGHTQ_RING_BYTES` for `ring-bytes`.
std::string variable_for(const std::string& name) {
  std::string variable = "LIGHTQ_";
  for (const char c : name) variable += c == '-' ? '_' : static_cast<char>(toupper(c));
  return variable;
}

/// Returns the variable that a flag's help names, or an empty text.
std::string variable_in(const std::string& help) {
  const std::string mark = "(Env:";
  const std::size_t at = help.rfind(mark);
  if (at == std::string::npos || !help.ends_with(')')) return "";
  return help.substr(at + mark.size(), help.size() - at - mark.size() - 1);
}

/// Sets an environment variable while the object exists.
class Variable {
 public:
  Variable(std::string name, const std::string& value) : name_(std::move(name)) {
    setenv(name_.c_str(), value.c_str(), 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { unsetenv(name_.c_str()); }

 private:
  std::string name_;
};

/// Returns the command's words and its required arguments: a topic, or the directory of a log (an empty
/// directory is an empty log).
std::vector<std::string> invocation(const std::string& command) {
  constexpr std::array<std::string_view, 16> without = {"top",
                                                        "topic list",
                                                        "stats",
                                                        "ping",
                                                        "reload",
                                                        "version",
                                                        "bench",
                                                        "user list",
                                                        "completion words",
                                                        "context list",
                                                        "doctor",
                                                        "definitions export",
                                                        "man",
                                                        "completion bash",
                                                        "completion zsh",
                                                        "completion fish"};
  std::vector<std::string> words;
  const std::size_t space = command.find(' ');
  words.push_back(command.substr(0, space));
  if (space != std::string::npos) words.push_back(command.substr(space + 1));
  static const test::TempDir empty_log;
  static const test::TempDir outputs;
  static int made = 0;
  static const std::string a_key = outputs / "a.key";
  static const bool has_key = make_client_key(a_key).ok();
  EXPECT_TRUE(has_key);
  if (command.starts_with("log ")) {
    const std::string output = outputs / std::to_string(++made);
    words.push_back(empty_log.path());
    if (command == "log repair") words.insert(words.end(), {"--output", output});
    if (command == "log snapshot") words.push_back(output);
  } else if (command == "key new") {
    words.push_back(outputs / ("key" + std::to_string(++made)));
  } else if (command == "key public") {
    words.push_back(a_key);
  } else if (std::ranges::find(without, command) == without.end()) {
    words.emplace_back("t");
  }
  if (command == "mirror") words.insert(words.end(), {"--from", "tcp://127.0.0.1:1"});
  if (command == "user grant" || command == "user revoke") words.insert(words.end(), {"--produce", "t"});
  if (command == "group set") words.insert(words.end(), {"g", "--dead-letter-topic", "d"});
  if (command == "group info") words.emplace_back("g");
  if (command == "group reset") words.insert(words.end(), {"g", "--to", "latest"});
  if (command == "dlq show" || command == "delayed show" || command == "trace") words.emplace_back("0");
  if (command == "delayed cancel" || command == "delayed hurry" || command == "delayed reschedule")
    words.insert(words.end(), {"--id", "i"});
  if (command.starts_with("schedule ") && command != "schedule list") words.emplace_back("t");
  if (command == "schedule set") words.insert(words.end(), {"payload", "--cron", "0 9 * * *"});
  if (command == "delayed reschedule") words.insert(words.end(), {"--delay", "1s"});
  return words;
}

const std::set<std::string> all_commands = {"backup",
                                            "bench",
                                            "broker",
                                            "completion bash",
                                            "completion fish",
                                            "completion words",
                                            "completion zsh",
                                            "consume",
                                            "context add",
                                            "context list",
                                            "context remove",
                                            "context use",
                                            "definitions export",
                                            "definitions import",
                                            "delayed cancel",
                                            "delayed hurry",
                                            "delayed list",
                                            "delayed reschedule",
                                            "delayed show",
                                            "dlq list",
                                            "dlq purge",
                                            "dlq retry",
                                            "dlq show",
                                            "doctor",
                                            "export",
                                            "group info",
                                            "group list",
                                            "group reset",
                                            "group set",
                                            "import",
                                            "key new",
                                            "key public",
                                            "log dump",
                                            "log repair",
                                            "log snapshot",
                                            "log verify",
                                            "man",
                                            "mirror",
                                            "peek",
                                            "ping",
                                            "produce",
                                            "reload",
                                            "restore",
                                            "schedule list",
                                            "schedule pause",
                                            "schedule remove",
                                            "schedule resume",
                                            "schedule set",
                                            "schedule show",
                                            "stats",
                                            "sub",
                                            "top",
                                            "topic create",
                                            "topic delete",
                                            "topic delete-group",
                                            "topic info",
                                            "topic list",
                                            "topic pause",
                                            "topic purge",
                                            "topic resume",
                                            "topic set",
                                            "trace",
                                            "user add",
                                            "user grant",
                                            "user list",
                                            "user password",
                                            "user remove",
                                            "user revoke",
                                            "version"};

TEST(CommandLine, ReadsTheConfigurationInPlaceOfARun) {
  FakeBroker fake;
  int reads = 0;
  std::vector<Error> faults;
  fake.command.read_config = [&](const Overrides& given, const std::optional<std::string>& named) {
    ++reads;
    EXPECT_EQ(given, (Overrides{{"topics_max", "5"}}));
    EXPECT_EQ(named, "f.toml");
    return broker::ConfigReport{{}, faults};
  };
  for (const char* const flag : {"--check-config", "--print-config"}) {
    const std::vector<std::string> arguments = {"broker", flag, "--topics-max", "5", "--config", "f.toml"};
    faults = {};
    EXPECT_EQ(run(fake, arguments), 0);
    faults = {{ErrorCode::invalid_argument, "f.toml:1:1: wrong"}};
    EXPECT_EQ(run(fake, arguments), 2);
    faults = {{ErrorCode::io_error, "cannot read f.toml"}};
    EXPECT_EQ(run(fake, arguments), 1);
  }
  EXPECT_EQ(reads, 6);
  EXPECT_FALSE(fake.file) << "a broker was run";
  EXPECT_EQ(run(fake, {"broker", "--check-config", "--print-config"}), 2);
  EXPECT_EQ(run(fake, {"broker", "--json"}), 2);
}

TEST(CommandLine, HasAllCommands) {
  std::set<std::string> commands;
  for (const FlagListing& flag : list_flags(FakeBroker().command)) commands.insert(flag.command);
  EXPECT_EQ(commands, all_commands);
}

TEST(CommandLine, NamesAVariableForEveryFlagOfEveryCommand) {
  for (const FlagListing& flag : list_flags(FakeBroker().command)) {
    ASSERT_FALSE(flag.names.empty()) << flag.command << " has a flag without a long name: " << flag.help;
    std::set<std::string> expected;
    for (const std::string& name : flag.names) expected.insert(variable_for(name));
    EXPECT_TRUE(expected.contains(variable_in(flag.help)))
        << "lightq " << flag.command << " --" << flag.names.front() << ": " << flag.help;
  }
}

TEST(CommandLine, OffersExactlyTheBrokersSettingsAsFlags) {
  std::set<std::string> settings;  // config_test checks that file and environment have each of them too
  std::set<std::string> switches;  // the settings that a flag without a value sets
  for (const broker::Setting& setting : broker::settings()) {
    settings.insert(setting.name);
    if (setting.type == broker::SettingType::boolean) switches.insert(setting.name);
  }
  std::set<std::string> offered;
  for (const FlagListing& flag : list_flags(FakeBroker().command)) {
    if (flag.command != "broker" || flag.names.front() == "config") continue;
    const std::string& name = flag.names.front();
    std::string setting = name;
    std::replace(setting.begin(), setting.end(), '-', '_');
    const bool is_switch = switches.contains(setting);
    std::vector<std::string> arguments = {"broker", "--" + name};
    if (!is_switch) arguments.emplace_back("value");
    FakeBroker broker;
    ASSERT_EQ(run(broker, arguments), 0) << name;
    ASSERT_EQ(broker.overrides.size(), 1U) << "--" << name << " sets nothing that a file could set too";
    EXPECT_EQ(broker.overrides.begin()->second, is_switch ? "true" : "value") << name;
    offered.insert(broker.overrides.begin()->first);
  }
  EXPECT_EQ(offered, settings);
}

TEST(CommandLine, ReadsTheNameOfTheBrokersFileFromItsFlagOrVariable) {
  FakeBroker broker;
  ASSERT_EQ(run(broker, {"broker"}), 0);
  EXPECT_EQ(broker.file, std::nullopt);
  const Variable variable("LIGHTQ_CONFIG", "/by/variable");
  ASSERT_EQ(run(broker, {"broker"}), 0);
  EXPECT_EQ(broker.file, "/by/variable");
  ASSERT_EQ(run(broker, {"broker", "--config", "/by/flag"}), 0);
  EXPECT_EQ(broker.file, "/by/flag");
}

TEST(CommandLine, OffersOneFlagForSessionsAndOneWithout) {
  const Variable nowhere("LIGHTQ_BROKER", "tcp://127.0.0.1:1");
  const Variable patience("LIGHTQ_REQUEST_TIMEOUT", "1ms");
  const FakeBroker broker;
  EXPECT_EQ(run(broker, {"produce", "t", "--no-wait", "--zmq"}), 2);
  for (const char* command : {"produce", "consume", "sub"}) {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(run(broker, {command, "t", "--plain", "--zmq"}), 2) << command;
    EXPECT_NE(::testing::internal::GetCapturedStderr().find(
                  "--zmq: applies to sessions; --plain uses ZeroMQ anyway"),
              std::string::npos)
        << command;
    const Variable by_variable("LIGHTQ_ZMQ", "true");
    EXPECT_EQ(run(broker, {command, "t", "--plain"}), 1) << command << ": the flag wins";
    const Variable both("LIGHTQ_PLAIN", "true");
    EXPECT_EQ(run(broker, {command, "t"}), 2) << command << ": neither";
    EXPECT_EQ(run(broker, {command, "t", "--zmq"}), 1) << command << ": the flag wins";
  }
}

/// Returns the error text of a command line that is refused.
std::string told_of(const std::vector<std::string>& arguments) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run(FakeBroker(), arguments), 2) << arguments[0];
  return ::testing::internal::GetCapturedStderr();
}

TEST(CommandLine, RepeatsNoWordThatMayBeAPassword) {
  const std::string secret = "hunter2";
  const Variable nowhere("LIGHTQ_BROKER", "tcp://127.0.0.1:1");
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"stats", "t", secret},
           {"consume", "t", secret},
           {"topic", "create", "t", secret},
           {"ping", secret},
           {"broker", secret},
           {"user", "add", "ann", secret},
           {"stats", "t", "-p" + secret},
           {"stats", "t", "--password=" + secret},
           {"stats", "t", "--user", "ann:" + secret},
           {"stats", "t", "--broker", "tcp://ann:" + secret + "@127.0.0.1:1"}}) {
    EXPECT_EQ(told_of(arguments).find(secret), std::string::npos) << arguments[0];
  }
  EXPECT_NE(told_of({"stats", "t", "-p" + secret}).find("not expected: -p\n"), std::string::npos);
  EXPECT_NE(told_of({"stats", "t", secret}).find("passwords come from"), std::string::npos);
  EXPECT_NE(told_of({"stats", "t", "--user", "ann:" + secret}).find("user 'ann:...'"), std::string::npos);
  EXPECT_NE(told_of({"stats", "t", "--frob", secret}).find("--frob"), std::string::npos);
}

TEST(CommandLine, AFlagOverridesItsVariable) {
  const Variable nowhere("LIGHTQ_BROKER", "tcp://127.0.0.1:1");
  const Variable patience("LIGHTQ_REQUEST_TIMEOUT", "1ms");
  const FakeBroker broker;
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"ping"}, {"topic", "list"}, {"produce", "t"}, {"user", "list"}, {"stats"}}) {
    std::vector<std::string> words = command;
    words.insert(words.end(), {"--broker", "tcp://127.0.0.1:2"});
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(run(broker, words), 1);
    EXPECT_NE(::testing::internal::GetCapturedStderr().find("tcp://127.0.0.1:2"), std::string::npos)
        << words.front();
  }
}

TEST(CommandLine, RefusesAVariableThatNoCommandKnows) {
  const FakeBroker broker;
  EXPECT_EQ(run(broker, {"broker"}), 0);
  {
    const Variable mistyped("LIGHTQ_TOPIC_MAX", "5");
    EXPECT_EQ(run(broker, {"broker"}), 2);
    EXPECT_EQ(run(broker, {"version"}), 2);
    EXPECT_EQ(run(broker, {"broker", "--help"}), 0);
  }
  for (const char* name : {"LIGHTQ_TOPICS_MAX", "LIGHTQ_CONFIG", "LIGHTQ_GROUP", "LIGHTQ_CORE_DUMPS"}) {
    const Variable known(name, "5");
    EXPECT_EQ(run(broker, {"broker"}), 0) << name << " is for another command, or for this one";
  }
}

/// Skips flags that accept any text: no nonsense value shows that their variable is read.
TEST(CommandLine, ReadsTheVariableOfEveryFlagThatDoesNotTakeAnyText) {
  const Variable nowhere("LIGHTQ_BROKER", "tcp://127.0.0.1:1");
  const Variable patience("LIGHTQ_REQUEST_TIMEOUT", "1ms");
  const test::TempDir contexts;
  const Variable config("XDG_CONFIG_HOME", contexts.path());
  const std::set<std::string> any_text = {"URI", "NAME", "FILE",    "DIR",  "TOPIC",
                                          "KEY", "TEXT", "PATTERN", "ZONE", "CONTEXT"};
  std::set<std::string> switches;
  for (const FlagListing& flag : list_flags(FakeBroker().command)) {
    if (flag.command == "broker" || any_text.contains(flag.value)) continue;
    const std::string variable = variable_in(flag.help);
    if (variable == "LIGHTQ_REQUEST_TIMEOUT") continue;  // set by this test
    if (flag.value.empty()) switches.insert(variable);
    // A flag that is typed wins over its variable.
    if (flag.command == "delayed reschedule" && variable == "LIGHTQ_DELAY") continue;
    if (flag.command == "schedule set" && variable == "LIGHTQ_CRON") continue;
    if (flag.command == "group reset" && variable == "LIGHTQ_RESET_TO") continue;
    SCOPED_TRACE(variable + " of lightq " + flag.command);
    const FakeBroker broker;
    std::optional<Variable> a_setting;  // given by its variable, which may be the one that is tested
    if (flag.command == "topic set") a_setting.emplace("LIGHTQ_MESSAGE_TTL", "1s");
    // The exit codes of these without nonsense depend on earlier commands or on this machine.
    const bool is_any = flag.command.starts_with("context ") || flag.command == "doctor" ||
                        flag.command == "backup" || flag.command == "restore";
    const bool needs_no_broker = flag.command == "version" || flag.command.starts_with("completion ") ||
                                 flag.command == "man" || flag.command.starts_with("log ") ||
                                 flag.command.starts_with("key ");
    const int without = is_any ? 0 : run(broker, invocation(flag.command));
    EXPECT_EQ(without, needs_no_broker || is_any ? 0 : 1);
    const Variable nonsense(variable, "maybe");
    EXPECT_EQ(run(broker, invocation(flag.command)), 2);
  }
  EXPECT_EQ(switches, (std::set<std::string>{"LIGHTQ_ADMIN",
                                             "LIGHTQ_ALL",
                                             "LIGHTQ_ALL_DELAYED",
                                             "LIGHTQ_BATCHES",
                                             "LIGHTQ_CURSORS",
                                             "LIGHTQ_DEAD_LETTER_EXPIRED",
                                             "LIGHTQ_DELAYED",
                                             "LIGHTQ_DRY_RUN",
                                             "LIGHTQ_ENCRYPT_AT_REST",
                                             "LIGHTQ_FILE_PER_MESSAGE",
                                             "LIGHTQ_FOLLOW",
                                             "LIGHTQ_FORCE",
                                             "LIGHTQ_FORCE_RAW",
                                             "LIGHTQ_INSECURE",
                                             "LIGHTQ_JSON",
                                             "LIGHTQ_JSON_DOCUMENT",
                                             "LIGHTQ_NO_WAIT",
                                             "LIGHTQ_NULL",
                                             "LIGHTQ_OPEN",
                                             "LIGHTQ_PARK",
                                             "LIGHTQ_PAUSE_WHEN_FAILING",
                                             "LIGHTQ_PLAIN",
                                             "LIGHTQ_PREVIEW",
                                             "LIGHTQ_QUIET",
                                             "LIGHTQ_RETENTION_OVER_PENDING",
                                             "LIGHTQ_SEGMENTS",
                                             "LIGHTQ_TRUST_BATCHES",
                                             "LIGHTQ_UNTIL_END",
                                             "LIGHTQ_WATCH",
                                             "LIGHTQ_YES",
                                             "LIGHTQ_ZMQ"}));
}

}  // namespace
}  // namespace lightq::cli
