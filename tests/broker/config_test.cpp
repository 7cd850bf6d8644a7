/// Tests of the settings from file, environment and flags: broker/config.
#include "broker/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "support/temp_dir.hpp"

namespace lightq::broker {
namespace {

using lightq::test::TempDir;
using testing::HasSubstr;
using testing::StartsWith;
using Texts = std::map<std::string, std::string>;

Environment environment(Texts variables) {
  variables.emplace("HOME", "/somewhere/somebody");
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

Config load(const Texts& variables, const Texts& overrides) {
  auto config = load_config(std::nullopt, environment(variables), overrides);
  EXPECT_TRUE(config.ok()) << (config.ok() ? "" : config.error().text());
  return config.ok() ? std::move(config).value() : Config();
}

std::string toml_error(const std::string& text) {
  Config config;
  const auto applied = apply_toml(config, text, "f.toml");
  return applied.ok() ? "" : applied.error().text();
}

TEST(Config, HasDefaultsThatRunOnLoopback) {
  const auto config = load({}, {});
  EXPECT_EQ(config.control_uri, "tcp://127.0.0.1:5000");
  EXPECT_EQ(config.bind_host, "127.0.0.1");
  EXPECT_FALSE(config.ports.has_value());
  EXPECT_FALSE(config.min_free_bytes.has_value());
  EXPECT_TRUE(config.admin_password.empty());
  EXPECT_FALSE(config.data_dir.empty());
}

TEST(Config, LetsFlagsWinOverTheEnvironmentAndThatOverTheFile) {
  const TempDir directory;
  const auto file = directory / "lightq.toml";
  std::ofstream(file) << "advertise = \"file\"\nbind = \"0.0.0.0\"\nmessage_bytes_max = 1000\nreactors = 3\n";
  const auto config =
      load_config(file, environment({{"LIGHTQ_ADVERTISE", "variable"}, {"LIGHTQ_BIND", "1.1.1.1"}}),
                  {{"advertise", "flag"}});
  ASSERT_TRUE(config.ok()) << config.error().text();
  EXPECT_EQ(config.value().advertise_host, "flag");
  EXPECT_EQ(config.value().bind_host, "1.1.1.1");
  EXPECT_EQ(config.value().message_bytes_max, 1000U);
  EXPECT_EQ(config.value().reactors, 3U);
  const auto named = load({{"LIGHTQ_CONFIG", file}}, {});
  EXPECT_EQ(named.reactors, 3U);
}

TEST(Config, ReadsEverySettingFromEachSource) {
  const std::map<std::string, std::pair<std::string, std::string>> values = {
      {"data_dir", {"/d", "\"/d\""}},          {"control", {"ipc:///c", "\"ipc:///c\""}},
      {"ports", {"10-20", "\"10-20\""}},       {"log_level", {"debug", "\"debug\""}},
      {"log_file_bytes", {"1MiB", "1048576"}}, {"message_bytes_max", {"2MiB", "\"2MiB\""}},
      {"min_free_bytes", {"0", "0"}}};
  std::set<std::string> names;
  const TempDir directory;
  std::ofstream(directory / "password") << "from a file\n";
  for (const auto& setting : settings()) {
    names.insert(setting.name);
    const std::string name = setting.name;
    auto value = std::pair<std::string, std::string>("7", "7");
    if (setting.type == SettingType::text) value = {"h", "\"h\""};
    if (name == "admin_password_file") value = {directory / "password", '"' + (directory / "password") + '"'};
    if (values.contains(name)) value = values.at(name);
    EXPECT_EQ(toml_error(name + " = " + value.second), "");
    load({{environment_name(setting), value.first}}, {});
    load({}, {{name, value.first}});
  }
  EXPECT_EQ(names.size(), settings().size()) << "a name twice";
}

TEST(Config, TakesDashesInFlags) {
  EXPECT_EQ(load({}, {{"log-level", "error"}}).log_level, LogLevel::error);
  EXPECT_EQ(load({}, {{"message-bytes-max", "1 KiB"}}).message_bytes_max, 1024U);
}

TEST(Config, NamesFileLineAndColumn) {
  EXPECT_THAT(toml_error("\nports = 5"), StartsWith("f.toml:2:9: ports: must be a text"));
  EXPECT_THAT(toml_error("reactors = \"5\""), StartsWith("f.toml:1:12: reactors: must be a whole number"));
  EXPECT_THAT(toml_error("reactors = 65"), HasSubstr("from 0 to 64"));
  EXPECT_THAT(toml_error("reactors = -1"), HasSubstr("from 0 to 64"));
  EXPECT_THAT(toml_error("reactors = 1.5"), HasSubstr("must be a whole number"));
  EXPECT_THAT(toml_error("# x\n  colour = 1"), StartsWith("f.toml:2:3: colour: there is no such setting"));
  EXPECT_THAT(toml_error("log-level = \"info\""), HasSubstr("no such setting"));
  EXPECT_THAT(toml_error("[table]\n"), HasSubstr("no such setting"));
  EXPECT_THAT(toml_error("ports = [\n"), StartsWith("f.toml:"));
  EXPECT_THAT(toml_error("bind = \"\xff\""), StartsWith("f.toml:1:"));
}

TEST(Config, RefusesValuesOutOfRangeAndSaysWhatTheyMayBe) {
  const std::vector<std::pair<std::string, std::string>> bad = {{"ports", "9-5"},
                                                                {"ports", "x"},
                                                                {"ports", "0-5"},
                                                                {"ports", "1-65536"},
                                                                {"ports", "-"},
                                                                {"ports", ""},
                                                                {"log-level", "loudest"},
                                                                {"message-bytes-max", "2GiB"},
                                                                {"message-bytes-max", "0"},
                                                                {"message-bytes-max", "x"},
                                                                {"message-bytes-max", "99999999999999999999"},
                                                                {"control", "127.0.0.1"},
                                                                {"bind", "a b"},
                                                                {"data-dir", ""},
                                                                {"reactors", "-1"},
                                                                {"reactors", "1x"},
                                                                {"flush-interval-ms", "1e3"}};
  for (const auto& [name, value] : bad) {
    const auto config = load_config(std::nullopt, environment({}), {{name, value}});
    ASSERT_FALSE(config.ok()) << name << " " << value;
    EXPECT_THAT(config.error().text(), StartsWith("--" + name + ": must be ")) << value;
    EXPECT_THAT(config.error().text(), HasSubstr('"' + value + '"'));
  }
  const auto unknown = load_config(std::nullopt, environment({}), {{"colour", "red"}});
  EXPECT_THAT(unknown.error().text(), StartsWith("--colour: there is no such setting"));
  const auto variable = load_config(std::nullopt, environment({{"LIGHTQ_PORTS", "9-5"}}), {});
  EXPECT_THAT(variable.error().text(), StartsWith("LIGHTQ_PORTS: must be "));
}

TEST(Config, NamesAFileThatCannotBeRead) {
  const auto config = load_config("/nonexistent/lightq.toml", environment({}), {});
  ASSERT_FALSE(config.ok());
  EXPECT_THAT(config.error().text(), HasSubstr("/nonexistent/lightq.toml"));
  const TempDir directory;
  EXPECT_FALSE(load_config(directory.path(), environment({}), {}).ok()) << "a directory";
}

TEST(Config, TakesTheAdminsPasswordFromAFileOrTheEnvironment) {
  const TempDir directory;
  const auto file = directory / "password";
  std::ofstream(file) << "from a file\nsecond line\n";
  EXPECT_EQ(load({{"LIGHTQ_ADMIN_PASSWORD", "variable"}}, {}).admin_password.expose(), "variable");
  EXPECT_EQ(
      load({{"LIGHTQ_ADMIN_PASSWORD", "variable"}}, {{"admin-password-file", file}}).admin_password.expose(),
      "from a file");
  std::ofstream(directory / "empty") << "\n";
  EXPECT_FALSE(
      load_config(std::nullopt, environment({}), {{"admin-password-file", directory / "empty"}}).ok());
  EXPECT_FALSE(
      load_config(std::nullopt, environment({}), {{"admin-password-file", directory / "none"}}).ok());
  EXPECT_FALSE(
      load_config(std::nullopt, environment({{"LIGHTQ_ADMIN_PASSWORD", std::string(1025, 'x')}}), {}).ok());
}

TEST(Config, RemovesTheAdminsPasswordFromTheEnvironmentOnceRead) {
  ASSERT_EQ(setenv("LIGHTQ_ADMIN_PASSWORD", "only once", 1), 0);
  const char* place = getenv("LIGHTQ_ADMIN_PASSWORD");
  EXPECT_EQ(process_environment("LIGHTQ_ADMIN_PASSWORD"), "only once");
  EXPECT_EQ(getenv("LIGHTQ_ADMIN_PASSWORD"), nullptr);
  EXPECT_EQ(place[0], '\0');
  EXPECT_EQ(process_environment("LIGHTQ_ADMIN_PASSWORD"), std::nullopt);
}

TEST(Config, ChoosesADataDirectoryByWhoRunsIt) {
  EXPECT_EQ(default_data_dir(true, environment({})).value(), "/var/lib/lightq");
  EXPECT_EQ(default_data_dir(false, environment({{"XDG_STATE_HOME", "/s"}})).value(), "/s/lightq");
  EXPECT_EQ(default_data_dir(false, environment({})).value(), "/somewhere/somebody/.local/state/lightq");
  EXPECT_FALSE(default_data_dir(false, [](const std::string&) { return std::nullopt; }).ok());
}

}  // namespace
}  // namespace lightq::broker
