/// Tests of the files that a broker's settings name: an error names both the setting and the file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>

#include <lightq/base/z85.hpp>

#include "access/curve_key_file.hpp"
#include "access/tls_files.hpp"
#include "broker/broker.hpp"
#include "embedded_broker.hpp"

namespace lightq::broker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace std::chrono_literals;

struct NamedFile {
  std::string setting;
  bool is_secret;
  std::size_t bytes_max;
};

void PrintTo(const NamedFile& named, std::ostream* to) {
  *to << named.setting;
}

class SettingFile : public ::testing::TestWithParam<NamedFile> {
 protected:
  SettingFile() {
    const TlsFiles own{good_ / "tls.crt", good_ / "tls.key"};
    EXPECT_TRUE(open_own_tls_context(own, {1'800'000'000'000'000}).ok());
    write(good_ / "keys", to_z85(CurveKeyPair().public_key()) + "\n");
    write(good_ / "storage", std::string(64, 'a') + "\n");
    write(good_ / "password", "planted-in-a-setting's-file\n");
    overrides_ = {{"data_dir", directory_ / "data"},
                  {"control", "tcp://127.0.0.1:0"},
                  {"encrypt", "true"},
                  {"min_free_bytes", "0"},
                  {"allowed_client_keys", good_ / "keys"},
                  {"tls_certificate", own.certificate},
                  {"tls_key", own.key},
                  {"storage_key_file", good_ / "storage"},
                  {"admin_password_file", good_ / "password"}};
  }
  static void write(const std::string& path, const std::string& text, mode_t mode = 0600) {
    std::filesystem::remove(path);
    std::ofstream(path, std::ios::binary) << text;
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
  }
  /// Starts a broker with the settings. Returns its error, or an empty error if it starts.
  Error started(const PipeWait& wait = {}) {
    auto config = load_config({}, [](const std::string&) { return std::nullopt; }, overrides_, wait);
    if (!config) return config.error();
    auto broker = Broker::start(std::move(*config), sink_, wait);
    return broker ? Error{} : broker.error();
  }
  /// Starts a broker whose setting under test names `file_`. Checks that the error names the setting and the
  /// file, and returns it.
  Error refusal(const PipeWait& wait = {}) {
    overrides_[GetParam().setting] = file_;
    const Error error = started(wait);
    EXPECT_THAT(error.text(), AllOf(StartsWith(GetParam().setting + ": "), HasSubstr(file_)));
    EXPECT_THAT(error.text(), Not(HasSubstr("planted")));
    return error;
  }

  const lightq::test::TempDir directory_;
  const lightq::test::TempDir good_;
  const std::string file_ = directory_ / "named";
  std::map<std::string, std::string> overrides_;
  lightq::testing::SilentSink sink_;
};

TEST_P(SettingFile, AValidFileIsAccepted) {
  const Error error = started();
  EXPECT_EQ(error.message, "");
}

TEST_P(SettingFile, APipeWithoutAWriterTimesOut) {
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  const Error error = refusal({.time_max = 20ms});
  EXPECT_EQ(error.code, ErrorCode::timeout) << error.text();
  EXPECT_THAT(error.text(), HasSubstr("no content was received within 20 ms"));
}

TEST_P(SettingFile, APipeDoesNotDelayAStop) {
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  EXPECT_EQ(refusal({.stop_descriptor = ends[0]}).code, ErrorCode::shutting_down);
  for (const int end : ends) close(end);
}

TEST_P(SettingFile, ADirectoryIsRefused) {
  ASSERT_EQ(mkdir(file_.c_str(), 0700), 0);
  EXPECT_EQ(refusal().system_error, EISDIR);
}

TEST_P(SettingFile, AMissingFileIsNamed) {
  EXPECT_EQ(refusal().system_error, ENOENT);
}

TEST_P(SettingFile, ATooLargeFileIsRefused) {
  write(file_, std::string(GetParam().bytes_max + 3, ' '));
  const Error error = refusal();
  EXPECT_EQ(error.code, ErrorCode::invalid_argument);
  EXPECT_THAT(error.text(), HasSubstr(": more than "));
}

TEST_P(SettingFile, AnEmptyFileIsRefused) {
  write(file_, "");
  const Error error = refusal();
  EXPECT_TRUE(error.code == ErrorCode::invalid_argument || error.code == ErrorCode::corrupt) << error.text();
}

TEST_P(SettingFile, ASecretFileThatOthersMayReadIsRefused) {
  std::filesystem::copy_file(overrides_.at(GetParam().setting), file_);
  ASSERT_EQ(chmod(file_.c_str(), 0644), 0);
  if (GetParam().is_secret) {
    EXPECT_THAT(refusal().text(), HasSubstr("is open to other users: its mode is 0644; chmod 600 it"));
    return;
  }
  overrides_[GetParam().setting] = file_;
  EXPECT_EQ(started().message, "");
}

INSTANTIATE_TEST_SUITE_P(
    Of, SettingFile,
    ::testing::Values(NamedFile{"allowed_client_keys", false, limits::allowed_client_keys_bytes_max},
                      NamedFile{"tls_certificate", false, limits::tls_file_bytes_max},
                      NamedFile{"tls_key", true, limits::tls_file_bytes_max},
                      NamedFile{"storage_key_file", true, limits::storage_key_text_bytes_max},
                      NamedFile{"admin_password_file", true, limits::password_bytes_max}),
    [](const auto& given) { return given.param.setting; });

TEST_P(SettingFile, AFileThatOthersMayWriteIsRefused) {
  write(file_, "x", 0622);
  EXPECT_THAT(refusal().text(), HasSubstr("other users: its mode is 0622; chmod "));
}

/// The configuration file itself.
TEST(ConfigurationFile, APipeWithoutAWriterTimesOut) {
  const lightq::test::TempDir directory;
  const std::string file = directory / "lightq.toml";
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  const auto config =
      load_config(file, [](const std::string&) { return std::nullopt; }, {}, {.time_max = 20ms});
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.error().code, ErrorCode::timeout);
  EXPECT_THAT(config.error().text(), HasSubstr(file));
}

TEST(ConfigurationFile, IsRefusedIfOthersMayWriteIt) {
  const lightq::test::TempDir directory;
  const std::string file = directory / "lightq.toml";
  const auto load = [&] { return load_config(file, [](const std::string&) { return std::nullopt; }, {}); };
  std::ofstream(file) << "log_level = \"error\"\n";
  for (const mode_t mode : {0600U, 0644U, 0444U}) {
    ASSERT_EQ(chmod(file.c_str(), mode), 0);
    EXPECT_TRUE(load().ok()) << mode;
  }
  for (const mode_t mode : {0620U, 0602U, 0666U}) {
    ASSERT_EQ(chmod(file.c_str(), mode), 0);
    ASSERT_FALSE(load().ok()) << mode;
    EXPECT_THAT(load().error().text(), HasSubstr("can be written by other users"));
  }
}

TEST(SocketDirectory, IsRefusedIfOthersMayWriteToItUnlessItIsSticky) {
  const lightq::test::TempDir directory;
  const std::string sockets = directory / "sockets";
  ASSERT_TRUE(std::filesystem::create_directory(sockets));
  const std::map<std::string, std::string> settings[] = {{{"ipc_dir", sockets}},
                                                         {{"control", "ipc://" + sockets + "/control"}}};
  for (auto overrides : settings) {
    const std::string setting = overrides.begin()->first;
    overrides.insert({{"data_dir", directory / "data"}, {"min_free_bytes", "0"}});
    overrides.insert({"control", "tcp://127.0.0.1:0"});
    lightq::testing::SilentSink sink;
    const auto started = [&] {
      auto config =
          load_config({}, [](const std::string&) { return std::nullopt; }, overrides).value_or_throw();
      return Broker::start(std::move(config), sink);
    };
    for (const mode_t mode : {0755U, 0700U, 01777U}) {
      ASSERT_EQ(chmod(sockets.c_str(), mode), 0);
      const auto broker = started();
      EXPECT_TRUE(broker.ok()) << setting << mode << broker.error().text();
    }
    ASSERT_EQ(chmod(sockets.c_str(), 0777), 0);
    const auto refused = started();
    ASSERT_FALSE(refused.ok()) << setting;
    EXPECT_THAT(refused.error().text(),
                AllOf(StartsWith(setting + ": "), HasSubstr("can be written by other users")));
  }
}

TEST(EmbeddedBroker, KeepsItsDirectoryWhenTheProgramChangesItsOwn) {
  const lightq::test::TempDir directory;
  const std::filesystem::path before = std::filesystem::current_path();
  for (const char* name : {"elsewhere", "sockets"}) std::filesystem::create_directory(directory / name);
  std::filesystem::current_path(directory.path());
  lightq::testing::SilentSink sink;
  Config config;
  config.data_dir = "data";
  config.ipc_dir = "sockets";
  config.control_uri = "ipc://sockets/control";
  config.admin_password = Secret(planted::admin_password);
  config.min_free_bytes = 0;
  auto broker = Broker::start(std::move(config), sink).value_or_throw();
  std::filesystem::current_path(directory / "elsewhere");
  EXPECT_EQ(broker->control_uri(), "ipc://" + (directory / "sockets/control"));
  auto client = Client::connect(broker->control_uri(), {.admin = {"lightq_admin", planted::admin_password},
                                                        .discover_credentials = false})
                    .value_or_throw();
  client.create_topic("t", {.broker_type = BrokerType::file}).value_or_throw();
  broker.reset();
  std::filesystem::current_path(before);
  EXPECT_TRUE(std::filesystem::is_empty(directory / "elsewhere"));
  EXPECT_TRUE(std::filesystem::is_empty(directory / "sockets")) << "sockets are left behind";
}

}  // namespace
}  // namespace lightq::broker
