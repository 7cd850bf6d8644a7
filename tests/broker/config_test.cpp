/// Tests of broker/config: the settings from file, environment and flags.
#include "broker/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include <cstdlib>
#include <fstream>
#include <set>

#include "support/planted.hpp"
#include "support/temp_dir.hpp"

namespace lightq::broker {
namespace {

using lightq::test::TempDir;
using testing::EndsWith;
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

TEST(Config, FlagsOverrideTheEnvironmentWhichOverridesTheFile) {
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

/// The expected value of a setting by default, and after `text` was given. `get` prints the setting's member.
struct Expectation {
  std::string (*get)(const Config& config);
  std::string by_default;
  std::string text;
  std::string set;
};

std::string shown(std::uint64_t number) {
  return std::to_string(number);
}
std::string shown(std::chrono::milliseconds time) {
  return std::to_string(time.count());
}

/// Adds the limits that can be lowered.
void add_limits(std::map<std::string, Expectation>& all) {
  all["endpoints_max"] = {[](const Config& c) { return shown(c.endpoints_max); }, "0", "25", "25"};
  all["endpoints_per_topic_max"] = {[](const Config& c) { return shown(c.endpoints_per_topic_max); }, "4096",
                                    "22", "22"};
  all["connections_per_endpoint_max"] = {
      [](const Config& c) { return shown(c.connections_per_endpoint_max); }, "10000", "23", "23"};
  all["groups_per_topic_max"] = {[](const Config& c) { return shown(c.groups_per_topic_max); }, "1024", "24",
                                 "24"};
  all["session_channels_max"] = {[](const Config& c) { return shown(c.session_channels_max); }, "4096", "25",
                                 "25"};
  all["session_reads_max"] = {[](const Config& c) { return shown(c.session_reads_max); }, "16", "7", "7"};
  all["read_bytes_max"] = {[](const Config& c) { return shown(c.read_bytes_max); }, "67108864", "3MiB",
                           "3145728"};
  all["shared_bytes_total"] = {[](const Config& c) { return shown(c.shared_bytes_total); }, "16777216",
                               "3MiB", "3145728"};
  all["in_flight_messages_max"] = {[](const Config& c) { return shown(c.in_flight_messages_max); },
                                   "2147483648", "26", "26"};
  all["outstanding_ranges_max"] = {[](const Config& c) { return shown(c.outstanding_ranges_max); }, "16384",
                                   "27", "27"};
  all["group_state_bytes_max"] = {[](const Config& c) { return shown(c.group_state_bytes_max); }, "16777216",
                                  "28KiB", "28672"};
  all["redelivery_ms_max"] = {[](const Config& c) { return shown(c.redelivery_ms_max); }, "43200000", "60000",
                              "60000"};
  all["processing_timeout_ms"] = {[](const Config& c) { return shown(c.processing_timeout_ms); }, "1800000",
                                  "36", "36"};
  all["producers_max"] = {[](const Config& c) { return shown(c.producers_max); }, "10000", "29", "29"};
  all["client_keys_per_topic_max"] = {[](const Config& c) { return shown(c.client_keys_per_topic_max); },
                                      "16384", "30", "30"};
  all["users_max"] = {[](const Config& c) { return shown(c.users_max); }, "10000", "31", "31"};
  all["rights_per_user_max"] = {[](const Config& c) { return shown(c.rights_per_user_max); }, "256", "34",
                                "34"};
  all["credentials_remembered_max"] = {[](const Config& c) { return shown(c.credentials_remembered_max); },
                                       "65536", "35", "35"};
  all["decrypted_bytes_total"] = {[](const Config& c) { return shown(c.decrypted_bytes_total); }, "67108864",
                                  "9MiB", "9437184"};
  all["request_bytes_max"] = {[](const Config& c) { return shown(c.request_bytes_max); }, "65536", "5KiB",
                              "5120"};
  all["requests_waiting_max"] = {[](const Config& c) { return shown(c.requests_waiting_max); }, "1024", "32",
                                 "32"};
  all["control_connections_max"] = {[](const Config& c) { return shown(c.control_connections_max); }, "10000",
                                    "33", "33"};
  all["answers_unread_bytes_max"] = {[](const Config& c) { return shown(c.answers_unread_bytes_max); },
                                     "67108864", "6MiB", "6291456"};
  all["answers_unread_bytes_total"] = {[](const Config& c) { return shown(c.answers_unread_bytes_total); },
                                       "268435456", "7MiB", "7340032"};
  all["unfinished_bytes_total"] = {[](const Config& c) { return shown(c.unfinished_bytes_total); },
                                   "1073741824", "9MiB", "9437184"};
  all["ring_bytes_max"] = {[](const Config& c) { return shown(c.ring_bytes_max); }, "1099511627776", "8MiB",
                           "8388608"};
}

void add_http(std::map<std::string, Expectation>& all) {
  all["http"] = {[](const Config& c) { return http_uri_of(c).value_or("off"); }, "tcp://127.0.0.1:5001",
                 "tcp://127.0.0.1:6001", "tcp://127.0.0.1:6001"};
  all["http_hosts"] = {[](const Config& c) {
                         return c.http_hosts.empty() ? std::string()
                                                     : c.http_hosts.front() + " " + c.http_hosts.back();
                       },
                       "", "a.test,b.test", "a.test b.test"};
  all["http_connections_max"] = {[](const Config& c) { return shown(c.http_connections_max); }, "1024", "41",
                                 "41"};
  all["metrics_topics_max"] = {[](const Config& c) { return shown(c.metrics_topics_max); }, "1000", "42",
                               "42"};
}

/// All set values differ, so two settings that write the same member fail a test.
std::map<std::string, Expectation> expectations(const std::string& password_file) {
  std::map<std::string, Expectation> all;
  all["data_dir"] = {[](const Config& c) { return c.data_dir.string(); }, "", "/d/a", "/d/a"};
  all["control"] = {[](const Config& c) { return c.control_uri; }, "tcp://127.0.0.1:5000", "ipc:///c",
                    "ipc:///c"};
  add_http(all);
  all["bind"] = {[](const Config& c) { return c.bind_host; }, "127.0.0.1", "10.0.0.1", "10.0.0.1"};
  all["advertise"] = {[](const Config& c) { return c.advertise_host; }, "", "broker.test", "broker.test"};
  all["ports"] = {
      [](const Config& c) { return c.ports ? shown(c.ports->first) + " to " + shown(c.ports->last) : "any"; },
      "any", "10-20", "10 to 20"};
  all["log_level"] = {[](const Config& c) { return shown(static_cast<std::uint64_t>(c.log_level)); },
                      shown(static_cast<std::uint64_t>(LogLevel::info)), "error",
                      shown(static_cast<std::uint64_t>(LogLevel::error))};
  all["log_file"] = {[](const Config& c) { return c.log_file.string(); }, "", "/l/f", "/l/f"};
  all["log_file_bytes"] = {[](const Config& c) { return shown(c.log_file_bytes); }, "10485760", "1MiB",
                           "1048576"};
  all["audit_log"] = {[](const Config& c) { return c.audit_log.string(); }, "", "/l/f", "/l/f"};
  all["audit_log_bytes"] = {[](const Config& c) { return shown(c.audit_log_bytes); }, "10485760", "1MiB",
                            "1048576"};
  all["message_bytes_max"] = {[](const Config& c) { return shown(c.message_bytes_max); }, "16777216", "2MiB",
                              "2097152"};
  all["min_free_bytes"] = {
      [](const Config& c) { return c.min_free_bytes ? shown(*c.min_free_bytes) : "by the disk"; },
      "by the disk", "3000", "3000"};
  all["flush_interval_ms"] = {[](const Config& c) { return shown(c.flush_interval); }, "100", "11", "11"};
  all["endpoint_idle_ms"] = {[](const Config& c) { return shown(c.endpoint_idle); }, "30000", "12", "12"};
  all["session_heartbeat_ms"] = {[](const Config& c) { return shown(c.session_heartbeat); }, "10000", "300",
                                 "300"};
  all["port_quarantine_ms"] = {[](const Config& c) { return shown(c.port_rest); }, "600000", "13", "13"};
  all["ticket_ms"] = {[](const Config& c) { return shown(c.ticket_lifetime); }, "86400000", "100", "100"};
  all["open_topics"] = {[](const Config& c) { return std::string(c.open_topics ? "yes" : "no"); }, "no",
                        "true", "yes"};
  all["encrypt"] = {[](const Config& c) { return std::string(c.encrypt ? "yes" : "no"); }, "no", "true",
                    "yes"};
  all["allowed_client_keys"] = {[](const Config& c) { return c.allowed_client_keys.string(); }, "", "/k/f",
                                "/k/f"};
  all["core_dumps"] = {[](const Config& c) { return std::string(c.core_dumps ? "yes" : "no"); }, "no", "true",
                       "yes"};
  all["insecure"] = {[](const Config& c) { return std::string(c.insecure ? "yes" : "no"); }, "no", "true",
                     "yes"};
  all["tls_certificate"] = {[](const Config& c) { return c.tls_certificate.string(); }, "", "/c.crt",
                            "/c.crt"};
  all["tls_key"] = {[](const Config& c) { return c.tls_key.string(); }, "", "/k.key", "/k.key"};
  all["storage_key_file"] = {[](const Config& c) { return c.storage_key_file.string(); }, "", "/s.keys",
                             "/s.keys"};
  all["storage_key_command"] = {[](const Config& c) { return c.storage_key_command; }, "", "print keys",
                                "print keys"};
  all["stop_deadline_ms"] = {[](const Config& c) { return shown(c.stop_deadline); }, "5000", "14", "14"};
  all["disk_bytes_max"] = {[](const Config& c) { return shown(c.disk_bytes_max); }, "0", "1GiB",
                           "1073741824"};
  all["handshakes_max"] = {[](const Config& c) { return shown(c.handshakes_max.value_or(0)); }, "0", "16",
                           "16"};
  all["accepts_per_second"] = {[](const Config& c) { return shown(c.accepts_per_second.value_or(0)); }, "0",
                               "17", "17"};
  all["handshake_ms"] = {[](const Config& c) { return shown(c.handshake_time); }, "5000", "100", "100"};
  all["requests_per_second"] = {[](const Config& c) { return shown(c.requests_per_second); }, "10000", "21",
                                "21"};
  all["connections_per_user"] = {[](const Config& c) { return shown(c.connections_per_user); }, "4000", "18",
                                 "18"};
  all["topics_max"] = {[](const Config& c) { return shown(c.topics_max); }, "100000", "19", "19"};
  add_limits(all);
  all["memory_bytes_max"] = {[](const Config& c) { return shown(c.memory_bytes_max); }, "0", "2GiB",
                             "2147483648"};
  all["reactors"] = {[](const Config& c) { return shown(c.reactors); }, "0", "5", "5"};
  all["ipc_dir"] = {[](const Config& c) { return c.ipc_dir.string(); }, "", "/i/d", "/i/d"};
  all["admin_password_file"] = {[](const Config& c) { return c.admin_password_file.string(); }, "",
                                password_file, password_file};
  return all;
}

/// Checks that setting `name` has its set value, and every other setting its default.
void expect_only(const Config& config, const std::string& name,
                 const std::map<std::string, Expectation>& all) {
  for (const auto& [other, expected] : all) {
    if (other == "data_dir" && name != other)
      continue;  // another test checks the default, which depends on the user
    EXPECT_EQ(expected.get(config), other == name ? expected.set : expected.by_default) << other;
  }
}

TEST(Config, OneUserCannotFillAnEndpointByDefault) {
  EXPECT_LE(2 * Config().connections_per_user, limits::connections_per_endpoint_max);
}

TEST(Config, WantsACertificateWithItsKeyAndEncryption) {
  const auto refusal = [](bool encrypt, const char* certificate, const char* key) {
    Config config;
    config.encrypt = encrypt;
    config.tls_certificate = certificate;
    config.tls_key = key;
    const auto checked = check_tls(config);
    return checked.ok() ? std::string() : checked.error().message;
  };
  EXPECT_EQ(refusal(false, "", "") + refusal(true, "", "") + refusal(true, "c", "k"), "");
  EXPECT_THAT(refusal(true, "c", ""), HasSubstr("give both or none"));
  EXPECT_THAT(refusal(true, "", "k"), HasSubstr("give both or none"));
  EXPECT_THAT(refusal(false, "c", "k"), HasSubstr("tls_certificate: needs encrypt"));
}

TEST(Config, HttpFollowsTheControlSocketToAFreePort) {
  Config config;
  EXPECT_EQ(http_uri_of(config), "tcp://127.0.0.1:5001");
  config.control_uri = "ipc:///c";
  EXPECT_EQ(http_uri_of(config), "tcp://127.0.0.1:5001");
  config.control_uri = "tcp://127.0.0.1:0";
  EXPECT_EQ(http_uri_of(config), "tcp://127.0.0.1:0");
  config.http_uri = "tcp://127.0.0.1:5001";
  EXPECT_EQ(http_uri_of(config), "tcp://127.0.0.1:5001");
  config.http_uri = "";
  EXPECT_EQ(http_uri_of(config), std::nullopt);
}

TEST(Config, AcceptsStorageKeysFromOnePlaceOnly) {
  Config config;
  EXPECT_TRUE(check_storage_keys(config).ok());
  config.storage_key_file = "f";
  EXPECT_TRUE(check_storage_keys(config).ok());
  config.storage_key_command = "c";
  EXPECT_THAT(check_storage_keys(config).error().message, HasSubstr("give only one of them"));
  config.storage_key_file.clear();
  EXPECT_TRUE(check_storage_keys(config).ok());
}

TEST(Config, ReadsEverySettingFromEachSource) {
  const TempDir directory;
  std::ofstream(directory / "password") << planted::file_password << "\n";
  std::filesystem::permissions(directory / "password", std::filesystem::perms(0600));
  const auto all = expectations(directory / "password");
  std::set<std::string> names;
  for (const auto& setting : settings()) {
    const std::string name = setting.name;
    names.insert(name);
    ASSERT_TRUE(all.contains(name)) << name << " is not tested";
    const std::string& text = all.at(name).text;
    SCOPED_TRACE(name + " = " + text);
    const auto file = directory / (name + ".toml");
    std::ofstream(file) << name << " = "
                        << (setting.type == SettingType::number || setting.type == SettingType::boolean
                                ? text
                                : '"' + text + '"')
                        << '\n';
    expect_only(load({{"LIGHTQ_CONFIG", file}}, {}), name, all);
    expect_only(load({{environment_name(setting), text}}, {}), name, all);
    expect_only(load({}, {{name, text}}), name, all);
  }
  EXPECT_EQ(names.size(), settings().size()) << "a name twice";
  EXPECT_EQ(names.size(), all.size()) << "a test of a setting that is no more";
}

TEST(Config, AcceptsAHostWithOrWithoutTheBracketsOfAnIpv6Address) {
  EXPECT_EQ(load({}, {{"bind", "::1"}}).bind_host, "::1");
  EXPECT_EQ(load({}, {{"bind", "[::1]"}}).bind_host, "::1");
  EXPECT_EQ(load({}, {{"advertise", "[fe80::1%eth0]"}}).advertise_host, "fe80::1%eth0");
  EXPECT_EQ(load({}, {{"bind", "*"}, {"advertise", "h"}}).bind_host, "0.0.0.0");
}

TEST(Config, RefusesToBindEveryAddressWithoutSayingWhichOneClientsReach) {
  for (const char* wildcard : {"0.0.0.0", "0", "*", "::", "[::]", "0:0:0:0:0:0:0:0", "::0"}) {
    const auto alone = load_config(std::nullopt, environment({}), {{"bind", wildcard}});
    ASSERT_FALSE(alone.ok()) << wildcard;
    EXPECT_EQ(alone.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(alone.error().text(), HasSubstr("--advertise HOST"));
    EXPECT_TRUE(load_config(std::nullopt, environment({}), {{"bind", wildcard}, {"advertise", "h"}}).ok());
    const auto advertised = load_config(std::nullopt, environment({}), {{"advertise", wildcard}});
    ASSERT_FALSE(advertised.ok()) << wildcard;
    EXPECT_THAT(advertised.error().text(), HasSubstr("clients cannot connect"));
  }
}

TEST(Config, RefusesAnInvalidHost) {
  for (const auto& bad : {std::string("a\0b", 3), std::string("h\0", 2), std::string("h:5000"),
                          std::string("[h]"), std::string("[::1"), std::string("[::1]:5000"),
                          std::string("127.0.0.1:1"), std::string("a/b"), std::string("[]"), std::string()}) {
    for (const char* name : {"bind", "advertise"}) {
      const auto config = load_config(std::nullopt, environment({}), {{name, bad}});
      ASSERT_FALSE(config.ok()) << name << " " << testing::PrintToString(bad);
      EXPECT_THAT(config.error().text(), HasSubstr("must be a host name or an address"));
    }
  }
}

TEST(Config, AcceptsDashesInFlags) {
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
  EXPECT_THAT(toml_error("log-level = \"info\""), HasSubstr("no such setting; did you mean log_level?"));
  EXPECT_THAT(toml_error("topic_max = 5"), EndsWith("there is no such setting; did you mean topics_max?"));
  EXPECT_THAT(toml_error("Ports = \"5\""), EndsWith("did you mean ports?"));
  EXPECT_THAT(toml_error("[table]\n"), HasSubstr("no such setting"));
  EXPECT_THAT(toml_error("ports = [\n"), StartsWith("f.toml:"));
  EXPECT_THAT(toml_error("bind = \"\xff\""), StartsWith("f.toml:1:"));
}

TEST(Config, RefusesValuesOutOfRangeAndStatesTheRange) {
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
                                                                {"ticket-ms", "99"},
                                                                {"ticket-ms", "31536000001"},
                                                                {"open-topics", "yes"},
                                                                {"open-topics", "1"},
                                                                {"requests-per-second", "0"},
                                                                {"requests-per-second", "1000001"},
                                                                {"handshake-ms", "99"},
                                                                {"handshake-ms", "60001"},
                                                                {"request-bytes-max", "4095"},
                                                                {"request-bytes-max", "1048577"},
                                                                {"users-max", "0"},
                                                                {"users-max", "10001"},
                                                                {"outstanding-ranges-max", "1"},
                                                                {"answers-unread-bytes-max", "65535"},
                                                                {"answers-unread-bytes-total", "262143"},
                                                                {"ring-bytes-max", "65535"},
                                                                {"producers-max", "10001"},
                                                                {"reactors", "-1"},
                                                                {"reactors", "1x"},
                                                                {"flush-interval-ms", "1e3"}};
  for (const auto& [name, value] : bad) {
    const auto config = load_config(std::nullopt, environment({}), {{name, value}});
    ASSERT_FALSE(config.ok()) << name << " " << value;
    EXPECT_THAT(config.error().text(), StartsWith("--" + name + ": must be ")) << value;
    EXPECT_THAT(config.error().text(), HasSubstr('"' + value + '"'));
  }
  for (const auto& [name, value] :
       {std::pair<std::string, std::string>{"control", "tcp://ann:hunter2@[::1]:0"},
        {"bind", "ann:hunter2@localhost"},
        {"advertise", "hunter2@localhost"}}) {
    const auto config = load_config(std::nullopt, environment({}), {{name, value}});
    ASSERT_FALSE(config.ok()) << name;
    EXPECT_THAT(config.error().text(), StartsWith("--" + name + ": must be "));
    EXPECT_THAT(config.error().text(), Not(HasSubstr("hunter2")));
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
  EXPECT_EQ(config.error().system_error, ENOENT);
}

TEST(Config, ReadsTheAdminsPasswordFromAFileOrTheEnvironment) {
  const TempDir directory;
  const auto file = directory / "password";
  const auto write = [](const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
    std::filesystem::permissions(path, std::filesystem::perms(0600));
  };
  write(file, std::string(planted::file_password) + "\nsecond line\n");
  EXPECT_EQ(load({{"LIGHTQ_ADMIN_PASSWORD", planted::admin_password}}, {}).admin_password.expose(),
            planted::admin_password);
  EXPECT_EQ(load({{"LIGHTQ_ADMIN_PASSWORD", planted::admin_password}}, {{"admin-password-file", file}})
                .admin_password.expose(),
            planted::file_password);
  write(directory / "empty", "\n");
  EXPECT_FALSE(
      load_config(std::nullopt, environment({}), {{"admin-password-file", directory / "empty"}}).ok());
  write(directory / "long", std::string(1025, 'x') + "\n");
  EXPECT_FALSE(
      load_config(std::nullopt, environment({}), {{"admin-password-file", directory / "long"}}).ok());
  for (const unsigned mode : {0640U, 0604U, 0620U, 0602U}) {
    std::filesystem::permissions(file, std::filesystem::perms(mode));
    const auto open = load_config(std::nullopt, environment({}), {{"admin-password-file", file}});
    ASSERT_FALSE(open.ok()) << mode;
    EXPECT_EQ(open.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(open.error().text(), testing::AllOf(HasSubstr(file), HasSubstr("its mode is 06")));
  }
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

TEST(Config, ChoosesADataDirectoryByTheUser) {
  EXPECT_EQ(default_data_dir(true, environment({})).value(), "/var/lib/lightq");
  EXPECT_EQ(default_data_dir(false, environment({{"XDG_STATE_HOME", "/s"}})).value(), "/s/lightq");
  EXPECT_EQ(default_data_dir(false, environment({})).value(), "/somewhere/somebody/.local/state/lightq");
  EXPECT_FALSE(default_data_dir(false, [](const std::string&) { return std::nullopt; }).ok());
}

}  // namespace
}  // namespace lightq::broker
