/// Tests of discovery: where a client finds the broker and credentials, and where it never sends a password.
#include <lightq/client.hpp>
#include <lightq/discovery.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/planted.hpp"
#include "support/temp_dir.hpp"

namespace lightq {
namespace {

/// A data directory as a broker leaves it, and an environment without LightQ variables.
class Discovery : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"LIGHTQ_BROKER", "LIGHTQ_USER", "LIGHTQ_PASSWORD", "LIGHTQ_ADMIN_USER",
                             "LIGHTQ_ADMIN_PASSWORD", "LIGHTQ_DATA_DIR", "LIGHTQ_SERVER_KEY"}) {
      unsetenv(name);
    }
    lock_ = ::open((directory_ / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_EQ(::flock(lock_, LOCK_EX | LOCK_NB), 0);
    write(
        "broker.json",
        R"({"pid":1,"control_uri":"tcp://127.0.0.1:5017","version":"0.1.0","control_socket":"control.sock"})");
    write("admin.json", std::string(R"({"admin_user_id":"lightq_admin","admin_password":")") +
                            planted::file_password + R"("})");
  }
  void TearDown() override {
    unsetenv("LIGHTQ_DATA_DIR");
    if (lock_ >= 0) ::close(lock_);
  }
  /// Releases the lock as a killed broker does. Its files stay.
  void kill_broker() { ::close(std::exchange(lock_, -1)); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ / name) << text;
    std::filesystem::permissions(directory_ / name, std::filesystem::perms(0600));
  }
  [[nodiscard]] ClientOptions discovered(const std::string& uri) const {
    ClientOptions options{.data_dir = directory_.path()};
    EXPECT_TRUE(discover_credentials(uri, options).ok());
    return options;
  }
  test::TempDir directory_;
  int lock_ = -1;
};

TEST_F(Discovery, IgnoresTheFilesOfAKilledBroker) {
  EXPECT_TRUE(discover_control_place(directory_.path())->certain);
  EXPECT_EQ(discovered("tcp://127.0.0.1:5017").admin.password, planted::file_password);
  kill_broker();
  EXPECT_EQ(discover_control_uri(directory_.path()).value_or_throw(), default_control_uri);
  EXPECT_TRUE(discovered("tcp://127.0.0.1:5017").admin.user_id.empty()) << "anybody may listen there now";
}

TEST_F(Discovery, FindsABrokerBehindAnotherDevicesLockIfItsSocketAnswers) {
  kill_broker();  // the same as a broker in another pid namespace
  const detail::OwnerSocket socket(directory_.path(), "control.sock");
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(socket.path().size(), sizeof address.sun_path);
  std::copy(socket.path().begin(), socket.path().end(), address.sun_path);
  ASSERT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_TRUE(discovered("tcp://127.0.0.1:5017").admin.user_id.empty()) << "nobody listens yet";
  ASSERT_EQ(::listen(listener, 8), 0);
  EXPECT_EQ(discover_control_uri(directory_.path()).value_or_throw(), "tcp://127.0.0.1:5017");
  EXPECT_EQ(discovered("tcp://127.0.0.1:5017").admin.password, planted::file_password);
  ::close(listener);
  EXPECT_TRUE(discovered("tcp://127.0.0.1:5017").admin.user_id.empty());
}

TEST_F(Discovery, SendsTheLocalPasswordThroughTheSocketBesideItAlone) {
  ClientOptions options{.data_dir = directory_.path()};
  const auto socket = discover_credentials("tcp://127.0.0.1:5017", options).value_or_throw();
  ASSERT_TRUE(socket.has_value());
  EXPECT_EQ(socket->path(), directory_ / "control.sock");
  ClientOptions given{.admin = {"lightq_admin", planted::admin_password}, .data_dir = directory_.path()};
  EXPECT_FALSE(discover_credentials("tcp://127.0.0.1:5017", given).value_or_throw().has_value())
      << "what was given goes where it was said";
  for (const char* const elsewhere : {"", R"(,"control_socket":"../control.sock")"}) {
    write("broker.json", R"({"pid":1,"control_uri":"tcp://127.0.0.1:5017","version":"0.1.0")" +
                             std::string(elsewhere) + "}");
    EXPECT_TRUE(discovered("tcp://127.0.0.1:5017").admin.user_id.empty()) << elsewhere;
  }
}

TEST_F(Discovery, DoesNotTakeALockOnAnotherDeviceForTheBrokers) {
  const std::vector<std::string> names = detail::lock_names(directory_ / "lock");
  ASSERT_FALSE(names.empty());
  const std::string inode = names[0].substr(names[0].rfind(':'));
  const auto is_ours = [&](const std::string& text) { return detail::is_exclusive_lock(text, names); };
  EXPECT_TRUE(is_ours("1: FLOCK  ADVISORY  WRITE 4711 " + names[0] + " 0 EOF"));
  EXPECT_FALSE(is_ours("1: FLOCK  ADVISORY  WRITE 4711 7f:7f" + inode + " 0 EOF")) << "of another device";
  EXPECT_FALSE(is_ours("1: -> FLOCK  ADVISORY  WRITE 4711 " + names[0] + " 0 EOF")) << "it waits";
  EXPECT_FALSE(is_ours("1: FLOCK  ADVISORY  READ 4711 " + names[0] + " 0 EOF"));
  EXPECT_FALSE(is_ours("1: POSIX  ADVISORY  WRITE 4711 " + names[0] + " 0 EOF"));
}

TEST_F(Discovery, FindsTheBrokerThatBrokerJsonNames) {
  EXPECT_EQ(discover_control_uri(directory_.path()).value_or_throw(), "tcp://127.0.0.1:5017");
  setenv("LIGHTQ_DATA_DIR", directory_.path().c_str(), 1);
  EXPECT_EQ(discover_control_uri().value_or_throw(), "tcp://127.0.0.1:5017");
}

TEST_F(Discovery, PrefersTheEnvironment) {
  setenv("LIGHTQ_BROKER", "tcp://elsewhere:1", 1);
  EXPECT_EQ(discover_control_uri(directory_.path()).value_or_throw(), "tcp://elsewhere:1");
  unsetenv("LIGHTQ_BROKER");
}

TEST_F(Discovery, FallsBackToTheDefaultPort) {
  std::filesystem::remove(directory_ / "broker.json");
  EXPECT_EQ(discover_control_uri(directory_.path()).value_or_throw(), default_control_uri);
}

TEST_F(Discovery, ReadsAdminJsonForTheBrokerBesideIt) {
  EXPECT_EQ(discovered("tcp://127.0.0.1:5017").admin.password, planted::file_password);
  EXPECT_EQ(discovered("tcp://localhost:5017").admin.user_id, "lightq_admin");
}

TEST_F(Discovery, TriesNoOtherCredentialsThanAUsersThatWereGiven) {
  const auto found = [&](const Credentials& user, const Credentials& admin) {
    ClientOptions options{.user = user, .admin = admin, .data_dir = directory_.path()};
    EXPECT_TRUE(discover_credentials("tcp://127.0.0.1:5017", options).ok());
    return options.admin;
  };
  const Credentials ghost{"ghost", planted::user_password};
  EXPECT_EQ(found(ghost, {}).user_id, "");
  EXPECT_EQ(found(ghost, {"lightq_admin", ""}).password, planted::file_password) << "it was asked for";
  EXPECT_EQ(found(ghost, {"somebody", ""}).password, "") << "this is not the one of admin.json";
  EXPECT_EQ(found({}, {}).password, planted::file_password);
  setenv("LIGHTQ_USER", "ghost", 1);
  setenv("LIGHTQ_PASSWORD", "else", 1);
  EXPECT_EQ(found({}, {}).user_id, "") << "the environment has given a user";
  setenv("LIGHTQ_ADMIN_USER", "lightq_admin", 1);
  EXPECT_EQ(found({}, {}).password, planted::file_password);
  for (const char* name : {"LIGHTQ_USER", "LIGHTQ_PASSWORD", "LIGHTQ_ADMIN_USER"}) unsetenv(name);
}

TEST_F(Discovery, TrustsABrokerThatConfirmsThatItRuns) {
  EXPECT_TRUE(discover_control_place(directory_.path())->certain);
  std::filesystem::remove(directory_ / "broker.json");
  EXPECT_FALSE(discover_control_place(directory_.path())->certain);
  write("server_key.json", R"({"control_uri":"tcp://127.0.0.1:5018","server_key":"its key"})");
  EXPECT_FALSE(discover_control_place(directory_.path())->certain);
  EXPECT_EQ(discover_control_place(directory_.path())->uri, "tcp://127.0.0.1:5018");
}

TEST_F(Discovery, SendsTheLocalPasswordOnlyToTheLocalBroker) {
  EXPECT_TRUE(discovered("tcp://127.0.0.1:5018").admin.user_id.empty());
  EXPECT_TRUE(discovered("tcp://example.com:5017").admin.user_id.empty());
  EXPECT_TRUE(discovered("tcp://127.0.0.1.example.com:5017").admin.user_id.empty());
  std::filesystem::remove(directory_ / "broker.json");
  EXPECT_TRUE(discovered("tcp://127.0.0.1:5017").admin.user_id.empty());
}

TEST_F(Discovery, DoesNotReplaceGivenCredentials) {
  setenv("LIGHTQ_USER", "other", 1);
  setenv("LIGHTQ_PASSWORD", "else", 1);
  ClientOptions options{.user = {"alice", planted::user_password},
                        .admin = {"root", planted::admin_password}};
  options.data_dir = directory_.path();
  EXPECT_TRUE(discover_credentials("tcp://127.0.0.1:5017", options).ok());
  EXPECT_EQ(options.user.user_id, "alice");
  EXPECT_EQ(options.admin.password, planted::admin_password);
  unsetenv("LIGHTQ_USER");
  unsetenv("LIGHTQ_PASSWORD");
}

TEST_F(Discovery, FindsTheKeyOfTheBrokerThatBrokerJsonNamesAndOfNoOther) {
  const auto key_at = [&](const std::string& uri, const std::string& given = {}) {
    ClientOptions options{.server_key = given, .data_dir = directory_.path()};
    EXPECT_TRUE(discover_server_key(uri, options).ok());
    return options.server_key;
  };
  EXPECT_EQ(key_at("tcp://127.0.0.1:5017"), "") << "it does not encrypt";
  write("broker.json",
        R"({"pid":1,"control_uri":"tcp://127.0.0.1:5017","version":"0.1.0","server_key":"its key"})");
  EXPECT_EQ(key_at("tcp://127.0.0.1:5017"), "its key");
  EXPECT_EQ(key_at("tcp://localhost:5017"), "its key");
  EXPECT_EQ(key_at("tcp://127.0.0.1:5018"), "");
  EXPECT_EQ(key_at("tcp://example.com:5017"), "");
  EXPECT_EQ(key_at("tcp://127.0.0.1:5017", "given"), "given");
  setenv("LIGHTQ_SERVER_KEY", "of the environment", 1);
  EXPECT_EQ(key_at("tcp://127.0.0.1:5017"), "of the environment");
  EXPECT_EQ(key_at("tcp://example.com:5017"), "of the environment");
  EXPECT_EQ(key_at("tcp://127.0.0.1:5017", "given"), "given");
  unsetenv("LIGHTQ_SERVER_KEY");
}

/// The files that a broker with encryption leaves when it stops.
class StoppedBroker : public Discovery {
 protected:
  void SetUp() override {
    Discovery::SetUp();
    std::filesystem::remove(directory_ / "broker.json");
    keep("tcp://127.0.0.1:5017");
  }
  void keep(const std::string& uri) const {
    write("server_key.json", R"({"control_uri":")" + uri + R"(","server_key":"its key"})");
  }
  [[nodiscard]] std::string key_at(const std::string& uri) const {
    ClientOptions options{.data_dir = directory_.path()};
    EXPECT_TRUE(discover_server_key(uri, options).ok());
    return options.server_key;
  }
};

TEST_F(StoppedBroker, IsExpectedAtItsAddressWithItsKeyAndNoPasswordIsRead) {
  EXPECT_EQ(discover_control_uri(directory_.path()).value_or_throw(), "tcp://127.0.0.1:5017");
  EXPECT_TRUE(discovered("tcp://127.0.0.1:5017").admin.user_id.empty());
  for (const char* const same : {"127.0.0.1", "127.0.0.2", "localhost", "[::1]", "0.0.0.0"}) {
    EXPECT_EQ(key_at(std::string("tcp://") + same + ":5017"), "its key") << same;
  }
}

TEST_F(StoppedBroker, HasTheKeyOfNoOtherOne) {
  EXPECT_EQ(key_at("tcp://127.0.0.1:5018"), "");
  EXPECT_EQ(key_at("tcp://192.0.2.1:5017"), "");
  EXPECT_EQ(key_at("tcp://no-such-host.invalid:5017"), "");
  EXPECT_EQ(key_at("ipc:///nowhere/control"), "");
}

TEST_F(StoppedBroker, IsKnownByItsAddressOnTheNetworkAndBySockets) {
  keep("tcp://192.0.2.1:5017");
  EXPECT_EQ(key_at("tcp://192.0.2.1:5017"), "its key");
  EXPECT_EQ(key_at("tcp://127.0.0.1:5017"), "");
  keep("tcp://0.0.0.0:5017");
  EXPECT_EQ(key_at("tcp://127.0.0.1:5017"), "its key");
  keep("ipc:///somewhere/control");
  EXPECT_EQ(key_at("ipc:///somewhere/control"), "its key");
}

TEST_F(StoppedBroker, ItsKeyIsRequiredEvenIfAnotherBrokerHasRunWithoutEncryption) {
  write("broker.json", R"({"pid":1,"control_uri":"tcp://127.0.0.1:5017","version":"0.1.0"})");
  EXPECT_EQ(key_at("tcp://127.0.0.1:5017"), "its key");
  write("broker.json", R"({"pid":1,"control_uri":"tcp://127.0.0.1:5019","version":"0.1.0"})");
  EXPECT_EQ(key_at("tcp://127.0.0.1:5019"), "");
  EXPECT_EQ(discover_control_uri(directory_.path()).value_or_throw(), "tcp://127.0.0.1:5019")
      << "this one runs";
}

TEST_F(Discovery, RefusesAnAdminJsonThatOthersMayRead) {
  std::filesystem::permissions(directory_ / "admin.json", std::filesystem::perms(0640));
  ClientOptions options{.data_dir = directory_.path()};
  const auto refused = discover_credentials("tcp://127.0.0.1:5017", options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(refused.error().message.find("admin.json contains the administrator's password"),
            std::string::npos);
  EXPECT_NE(refused.error().message.find("mode is 0640"), std::string::npos);
  EXPECT_TRUE(options.admin.password.empty());
  EXPECT_TRUE(discover_credentials("tcp://127.0.0.1:5018", options).ok()) << "it is not asked for there";
}

TEST_F(Discovery, IgnoresFilesOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  constexpr uid_t stranger = 4711;
  const auto is_refused = [&](const auto& result, const std::string& name) {
    EXPECT_FALSE(result.ok()) << name;
    const Error error = result.ok() ? Error{} : result.error();
    EXPECT_EQ(error.code, ErrorCode::invalid_argument);
    EXPECT_NE(error.message.find(name + " contains the address of a broker"), std::string::npos);
  };
  ClientOptions options{.data_dir = directory_.path()};
  for (const std::string name : {"broker.json", "server_key.json"}) {
    write(name, R"({"control_uri":"tcp://127.0.0.1:5017","server_key":"another's"})");
    ASSERT_EQ(chown((directory_ / name).c_str(), stranger, 0), 0);
    is_refused(discover_control_uri(directory_.path()), name);
    is_refused(discover_server_key("tcp://127.0.0.1:5017", options), name);
    if (name == "broker.json") is_refused(discover_credentials("tcp://127.0.0.1:5017", options), name);
    is_refused(Client::connect(options), name);
    std::filesystem::remove(directory_ / name);
  }
  EXPECT_TRUE(options.server_key.empty() && options.admin.password.empty());
}

TEST_F(Discovery, DoesNotBlockOnAPipe) {
  std::filesystem::remove(directory_ / "broker.json");
  ASSERT_EQ(mkfifo((directory_ / "broker.json").c_str(), 0600), 0);
  EXPECT_EQ(discover_control_uri(directory_.path()).value_or_throw(), default_control_uri);
}

TEST_F(Discovery, IgnoresFilesOfTheWrongType) {
  write("admin.json", "[1, 2");
  EXPECT_TRUE(discovered("tcp://127.0.0.1:5017").admin.user_id.empty());
  write("broker.json", R"({"control_uri":5})");
  EXPECT_EQ(discover_control_uri(directory_.path()).value_or_throw(), default_control_uri);
}

}  // namespace
}  // namespace lightq
