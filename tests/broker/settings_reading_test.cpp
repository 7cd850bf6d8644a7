/// Tests of the settings with their sources, their faults and their topic templates.
#include "broker/settings/settings_reading.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "broker/reload_table.hpp"
#include "support/temp_dir.hpp"

namespace lightq::broker {
namespace {

using protocol::BrokerType;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Variables = std::map<std::string, std::string>;

SettingsReading read(const std::string& text) {
  SettingsReading reading;
  read_toml(reading, text, "f.toml");
  return reading;
}

std::vector<std::string> faults_of(const SettingsReading& reading) {
  std::vector<std::string> texts;
  for (const Error& fault : reading.faults) {
    EXPECT_EQ(fault.code, ErrorCode::invalid_argument);
    texts.push_back(fault.text());
  }
  return texts;
}

/// Returns the only fault of a text.
std::string fault_of(const std::string& text) {
  const auto all = faults_of(read(text));
  EXPECT_EQ(all.size(), 1U) << text;
  return all.empty() ? "" : all.front();
}

SettingsReading read_all(const std::string& text, const Variables& variables, const Variables& flags) {
  const test::TempDir directory;
  const std::string file = directory / "lightq.toml";
  std::ofstream(file) << text;
  const Environment environment = [&](const std::string& name) -> std::optional<std::string> {
    if (name == "HOME") return "/somewhere/somebody";
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  SettingsReading reading = read_settings(file, environment, flags);
  for (auto& [name, source] : reading.sources)
    if (source.starts_with(file)) source.replace(0, file.size(), "FILE");
  return reading;
}

TEST(SettingsReading, KnowsTheSourceOfEachSetting) {
  const auto reading =
      read_all("\nusers_max = 3\ntopics_max = 4\nlog_level = 'debug'\n",
               {{"LIGHTQ_TOPICS_MAX", "5"}, {"LIGHTQ_REACTORS", ""}}, {{"log_level", "error"}});
  EXPECT_THAT(faults_of(reading), IsEmpty());
  EXPECT_EQ(reading.source_of("users_max"), "FILE:2");
  EXPECT_EQ(reading.source_of("topics_max"), "LIGHTQ_TOPICS_MAX");
  EXPECT_EQ(reading.source_of("log_level"), "--log-level");
  EXPECT_EQ(reading.source_of("reactors"), "default");
  EXPECT_EQ(reading.config.topics_max, 5U);
}

TEST(SettingsReading, NamesAllFaultsInTheOrderOfTheFile) {
  const auto reading =
      read_all("users_max = 0\nreactor = 3\n", {{"LIGHTQ_TOPICS_MAX", "x"}}, {{"ports", "9-8"}});
  const auto faults = faults_of(reading);
  ASSERT_EQ(faults.size(), 4U);
  EXPECT_THAT(faults[0], HasSubstr(".toml:1:13: users_max: must be a whole number"));
  EXPECT_THAT(faults[1], HasSubstr(".toml:2:1: reactor: there is no such setting; did you mean reactors?"));
  EXPECT_THAT(faults[2], HasSubstr("LIGHTQ_TOPICS_MAX: must be"));
  EXPECT_THAT(faults[3], HasSubstr("--ports: must be"));
}

TEST(SettingsReading, AFileThatIsNotTomlHasOneFault) {
  EXPECT_THAT(fault_of("users_max = 3\nusers_max\n"), HasSubstr("f.toml:2:"));
}

TEST(ConfigValues, AreAcceptedByTheirSettings) {
  const auto reading =
      read("http = 'off'\nports = '7-9'\nlog_level = 'warn'\nhttp_hosts = 'a,b'\nencrypt = true\n");
  ASSERT_THAT(faults_of(reading), IsEmpty());
  Config again;
  const std::vector<ConfigValue> values = config_values(reading);
  ASSERT_EQ(values.size(), settings().size());
  std::size_t shown = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i].name, settings()[i].name);
    if (!values[i].value) continue;
    ++shown;
    EXPECT_TRUE(settings()[i].set(again, *values[i].value).ok()) << values[i].name << " " << *values[i].value;
  }
  EXPECT_GT(shown, values.size() / 2);
  for (const ReloadRow& row : reload_rows()) EXPECT_TRUE(row.is_same(reading.config, again)) << row.name;
}

TEST(ConfigValues, ACommandThatFetchesKeysIsNotShown) {
  for (const ConfigValue& one : config_values(read("storage_key_command = 'fetch --token planted'\n"))) {
    EXPECT_NE(one.value.value_or(""), "fetch --token planted");
    EXPECT_EQ(one.is_secret, one.name == "storage_key_command");
  }
}

constexpr const char* two_templates = R"(
[topics."orders.*"]
broker_type = "file"
retention_ms = 60000
capacity_bytes = "1GiB"
overflow = "reject"

[topics.ticks]
message_ttl_ms = 5
open = true
)";

TEST(TopicTemplateTables, AreReadWithTheirSources) {
  const auto reading = read(two_templates);
  ASSERT_THAT(faults_of(reading), IsEmpty());
  const auto& templates = reading.config.topic_templates;
  ASSERT_EQ(templates.size(), 2U);
  EXPECT_EQ(templates[0].pattern, "orders.*");
  EXPECT_EQ(templates[0].settings.broker_type, BrokerType::file);
  EXPECT_EQ(templates[0].settings.capacity_bytes, 1U << 30);
  EXPECT_TRUE(templates[0].given.has("overflow"));
  EXPECT_FALSE(templates[0].given.has("open"));
  EXPECT_TRUE(templates[1].settings.open);
  std::vector<std::string> lines;
  for (const ConfigValue& one : config_values(reading))
    if (!one.table.empty()) lines.push_back(one.table + " " + one.name + " " + *one.value + " " + one.source);
  EXPECT_THAT(lines, ElementsAre("orders.* broker_type file f.toml:3", "orders.* overflow reject f.toml:6",
                                 "orders.* capacity_bytes 1073741824 f.toml:5",
                                 "orders.* retention_ms 60000 f.toml:4", "ticks open true f.toml:10",
                                 "ticks message_ttl_ms 5 f.toml:9"));
}

TEST(TopicTemplateTables, FaultsNameTheirPlace) {
  EXPECT_THAT(fault_of("topics = 3"), HasSubstr("f.toml:1:10: topics: must have tables"));
  EXPECT_THAT(fault_of("topics.t = 3"), HasSubstr("t: must be a table of settings"));
  EXPECT_THAT(fault_of("[topics.'-a']"), HasSubstr("f.toml:1:9: topics: the pattern must have"));
  EXPECT_THAT(fault_of("[topics.'" + std::string(129, 'a') + "']"), HasSubstr("1 to 128 of"));
  EXPECT_THAT(fault_of("[topics.'a b']"), HasSubstr("the pattern must have"));
  EXPECT_THAT(fault_of("[topics.t]\n  retention_m = 3"),
              HasSubstr("f.toml:2:3: retention_m: topics have no such setting; did you mean retention_ms?"));
  EXPECT_THAT(fault_of("[topics.orders.eu]\nopen = true"), HasSubstr("[topics.\"orders.eu\"]"));
  EXPECT_THAT(fault_of("[topics.t]\nretention_ms = -3"),
              HasSubstr("f.toml:2:16: retention_ms: must be a whole number from 0 to"));
  EXPECT_THAT(fault_of("[topics.t]\nring_bytes = '1KiB'"), HasSubstr("ring_bytes: must be a whole number"));
  EXPECT_THAT(fault_of("[topics.t]\nopen = 'yes'"), HasSubstr("open: must be true or false"));
  EXPECT_THAT(fault_of("[topics.t]\nbroker_type = 'disk'"), HasSubstr("broker_type: must be one of"));
  EXPECT_THAT(fault_of("[topics.t]\nretention_ms = 5\nbroker_type = 'queue'"),
              HasSubstr("f.toml:2:1: retention_ms: only for broker_type file, queue_file"));
  std::string many;
  for (std::size_t i = 0; i <= topic_templates_max; ++i) many += "[topics.t" + std::to_string(i) + "]\n";
  EXPECT_THAT(fault_of(many), HasSubstr("at most 256 templates, not 257"));
}

TEST(TopicTemplateTables, MustFitTheSettingsOfTheBroker) {
  const std::string text = "ring_bytes_max = '1MiB'\n[topics.t]\nring_bytes = '2MiB'\n";
  const auto faults = faults_of(read_all(text, {}, {}));
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_THAT(faults[0], HasSubstr(":3: ring_bytes: exceeds ring_bytes_max (1048576)"));
  EXPECT_THAT(faults_of(read_all(text, {{"LIGHTQ_RING_BYTES_MAX", "2MiB"}}, {})), IsEmpty());
}

TEST(TopicTemplateTables, ACapacityMustHaveRoomForAMessage) {
  const auto faults = faults_of(read_all("[topics.'logs-*']\ncapacity_bytes = 68\n", {}, {}));
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_THAT(faults[0],
              HasSubstr(":2: capacity_bytes: no message fits into 68 bytes; the least is 69, and 0"));
  for (const auto* fits : {"0", "69"})
    EXPECT_THAT(faults_of(read_all(std::string("[topics.t]\ncapacity_bytes = ") + fits + "\n", {}, {})),
                IsEmpty());
}

TEST(TopicTemplateTables, AReloadReplacesThem) {
  const Config in_force;
  const Config other = read(two_templates).config;
  const ReloadPlan plan = plan_reload(in_force, other);
  EXPECT_THAT(plan.changed, ElementsAre("topics"));
  EXPECT_EQ(plan.config.topic_templates, other.topic_templates);
  Config taken;
  take_reloadable(plan.config, taken);
  EXPECT_THAT(plan_reload(taken, other).changed, IsEmpty());
  EXPECT_THAT(plan_reload(taken, in_force).changed, ElementsAre("topics")) << "they can be removed";
}

}  // namespace
}  // namespace lightq::broker
