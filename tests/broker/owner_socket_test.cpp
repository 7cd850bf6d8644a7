/// Tests of the control socket in the data directory: a client sends credentials that it found on disk only
/// through this socket.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <zmq.hpp>

#include "embedded_broker.hpp"

namespace lightq {
namespace {

using namespace std::chrono_literals;
using testing::EmbeddedBroker;

/// A broker with the administrator's password in its admin.json.
class OwnerSocketOfBroker : public ::testing::Test {
 protected:
  [[nodiscard]] Client client(Timeout request_timeout = 60s) const {
    return Client::connect(broker_.uri(),
                           {.data_dir = broker_.data_dir(), .request_timeout = request_timeout})
        .value_or_throw();
  }
  [[nodiscard]] std::filesystem::path socket() const { return broker_.data_dir() / "control.sock"; }
  /// Leaves the socket file of a broker that was killed.
  void leave_stale_socket() const {
    const int descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = socket();
    ASSERT_LT(path.size(), sizeof address.sun_path);
    std::copy(path.begin(), path.end(), address.sun_path);
    EXPECT_EQ(::bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ::close(descriptor);
  }

  EmbeddedBroker broker_{"tcp://127.0.0.1:0",
                         [](broker::Config& config) { config.admin_password = Secret(); }};
};

TEST_F(OwnerSocketOfBroker, AdmitsOnlyTheOwner) {
  struct stat facts{};
  ASSERT_EQ(::stat(socket().c_str(), &facts), 0);
  EXPECT_TRUE(S_ISSOCK(facts.st_mode));
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
  broker_.stop();
  EXPECT_FALSE(std::filesystem::exists(socket()));
}

TEST_F(OwnerSocketOfBroker, ReplacesTheFileOfAKilledBroker) {
  broker_.stop();
  leave_stale_socket();
  broker_.start();
  EXPECT_TRUE(client().stats().ok());
}

TEST_F(OwnerSocketOfBroker, IsTheOnlyWayForAFoundPassword) {
  Client living = client(2s);
  ASSERT_TRUE(living.stats().ok());
  EXPECT_EQ(living.uri(), broker_.uri()) << "the client is known by the address that was given";
  broker_.stop();
  {  // another program listens at the broker's address and speaks its protocol
    zmq::context_t context;
    zmq::socket_t stranger(context, zmq::socket_type::router);
    stranger.set(zmq::sockopt::linger, 0);
    stranger.bind(broker_.uri());
    EXPECT_FALSE(living.stats().ok());
    zmq::message_t part;
    EXPECT_FALSE(stranger.recv(part, zmq::recv_flags::dontwait)) << "it was told " << part.size() << " bytes";
  }
  broker_.start();
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  bool found = false;
  while (!found && std::chrono::steady_clock::now() < deadline) found = living.stats().ok();
  EXPECT_TRUE(found) << "the client finds the broker again by itself";
}

TEST_F(OwnerSocketOfBroker, ReportsThatTheBrokerIsGone) {
  Client living = client(200ms);
  broker_.stop();
  const auto asked = living.stats();
  ASSERT_FALSE(asked.ok());
  EXPECT_EQ(asked.error().code, ErrorCode::timeout);
  EXPECT_NE(asked.error().message.find(broker_.uri()), std::string::npos) << asked.error().message;
  EXPECT_NE(asked.error().message.find("control.sock"), std::string::npos) << asked.error().message;
}

TEST(OwnerSocket, IsFoundInADirectoryWithALongPath) {
  const test::TempDir directory;
  const std::filesystem::path data = std::filesystem::path(directory.path()) / std::string(150, 'd') / "data";
  const EmbeddedBroker broker("tcp://127.0.0.1:0", [&](broker::Config& config) {
    config.admin_password = Secret();
    config.data_dir = data;
  });
  ASSERT_TRUE(std::filesystem::exists(data / "control.sock"));
  Client client = Client::connect(broker.uri(), {.data_dir = data, .request_timeout = 60s}).value_or_throw();
  EXPECT_TRUE(client.stats().ok());
}

TEST(OwnerSocket, MayBeTheControlSocketItself) {
  const test::TempDir directory;
  const std::filesystem::path room = directory.path();
  const std::filesystem::path data = room / "data";
  std::filesystem::create_directory(data);
  std::filesystem::create_directory_symlink(data, room / "link");
  for (const std::filesystem::path& named : {data, room / "link"}) {
    const std::string uri = "ipc://" + (named / "control.sock").string();
    const EmbeddedBroker broker(uri, [&](broker::Config& config) {
      config.admin_password = Secret();
      config.data_dir = data;
    });
    struct stat facts{};
    ASSERT_EQ(::stat((data / "control.sock").c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777U, 0666U) << "no other socket has taken the control socket's place";
    Client client = Client::connect(uri, {.data_dir = data, .request_timeout = 60s}).value_or_throw();
    const auto stats = client.stats();
    EXPECT_TRUE(stats.ok()) << uri << ": " << stats.error().text();
  }
  EXPECT_FALSE(std::filesystem::exists(data / "control.sock"));
}

TEST(OwnerSocket, IsUsedByClientsOfABrokerThatEncrypts) {
  const EmbeddedBroker broker("tcp://127.0.0.1:0", [](broker::Config& config) {
    config.admin_password = Secret();
    config.encrypt = true;
  });
  Client client =
      Client::connect(broker.uri(), {.data_dir = broker.data_dir(), .request_timeout = 60s}).value_or_throw();
  EXPECT_TRUE(client.stats().ok());
}

}  // namespace
}  // namespace lightq
