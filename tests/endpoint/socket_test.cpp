/// Tests of the operating system's sockets: net/socket.
#include "net/socket.hpp"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <lightq/base/limits.hpp>
#include <lightq/base/types.hpp>

#include "support/temp_dir.hpp"

namespace lightq::broker {
namespace {

TEST(Socket, ANameOfBothKindsMeansIpv4) {
  EXPECT_EQ(resolve_host("localhost").value_or_throw(), "127.0.0.1");
  EXPECT_EQ(resolve_host("127.0.0.1").value_or_throw(), "127.0.0.1");
  EXPECT_EQ(resolve_host("::1").value_or_throw(), "::1");
  EXPECT_EQ(resolve_host("no such host").error().code, ErrorCode::invalid_argument);
}

TEST(Socket, DistinguishesASocketFileInUseFromAStaleOne) {
  const test::TempDir directory;
  const std::string path = directory / "s.sock";
  {
    const auto socket = listen_unix(path).value_or_throw();
    EXPECT_EQ(listen_unix(path).error().code, ErrorCode::address_in_use);
    EXPECT_TRUE(std::filesystem::is_socket(path)) << "the one in use";
  }
  EXPECT_TRUE(std::filesystem::is_socket(path)) << "nobody has removed it";
  EXPECT_TRUE(listen_unix(path).ok());
}

TEST(Socket, ReplacesNothingButASocket) {
  const test::TempDir directory;
  const std::string target = directory / "precious";
  const std::string link = directory / "link";
  const std::string room = directory / "room";
  std::ofstream(target) << "precious";
  std::filesystem::create_symlink(target, link);
  std::filesystem::create_directory(room);
  for (const std::string& path : {target, link, room}) {
    const auto socket = listen_unix(path);
    ASSERT_FALSE(socket.ok()) << path;
    EXPECT_EQ(socket.error().code, ErrorCode::address_in_use);
    EXPECT_EQ(socket.error().message, path + " exists and is not a socket");
    EXPECT_TRUE(std::filesystem::exists(std::filesystem::symlink_status(path)));
  }
  EXPECT_EQ(std::filesystem::file_size(target), 8U);
}

TEST(Socket, ReplacesNoSocketOfWhichItDoesNotKnowWhetherItIsInUse) {
  const test::TempDir directory;
  const std::string path = directory / "datagrams.sock";
  const UniqueFd other(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(other.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(listen_unix(path).error().code, ErrorCode::io_error);
  EXPECT_TRUE(std::filesystem::is_socket(path));
}

TEST(Socket, RemovesOnlyItsOwnFile) {
  const test::TempDir directory;
  const std::string path = directory / "s.sock";
  const auto mine = listen_unix(path).value_or_throw();
  std::filesystem::remove(path);
  const auto others = listen_unix(path).value_or_throw();
  mine.file.remove();
  EXPECT_TRUE(std::filesystem::is_socket(path));
  others.file.remove();
  EXPECT_FALSE(std::filesystem::exists(path));
  listen_tcp("127.0.0.1", 0).value_or_throw().file.remove();
}

int option_of(const UniqueFd& socket, int level, int option) {
  int value = -1;
  socklen_t bytes = sizeof value;
  getsockopt(socket.get(), level, option, &value, &bytes);
  return value;
}

/// Both ends of a connection to 127.0.0.1.
struct Accepting {
  Accepting() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(listener.port);
    EXPECT_EQ(::connect(theirs.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    auto accepted = accept_connection(listener, 0);
    EXPECT_EQ(accepted.outcome, AcceptOutcome::accepted);
    ours = std::move(accepted.descriptor);
  }
  [[nodiscard]] bool readable() const {
    pollfd asked{ours.get(), POLLIN, 0};
    return poll(&asked, 1, 0) == 1;
  }
  void say(const std::string& text) const {
    EXPECT_EQ(send(theirs.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  }

  ListeningSocket listener = listen_tcp("127.0.0.1", 0).value_or_throw();
  UniqueFd theirs{socket(AF_INET, SOCK_STREAM, 0)};
  UniqueFd ours;
};

TEST(Socket, AcceptedConnectionsHaveNoDelayAndKeepAlive) {
  const Accepting both;
  EXPECT_EQ(option_of(both.ours, IPPROTO_TCP, TCP_NODELAY), 1);
  EXPECT_EQ(option_of(both.ours, SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(option_of(both.ours, IPPROTO_TCP, TCP_KEEPIDLE), 60);
  EXPECT_EQ(option_of(both.ours, IPPROTO_TCP, TCP_KEEPINTVL), 10);
  EXPECT_EQ(option_of(both.ours, IPPROTO_TCP, TCP_KEEPCNT), 3);
  char control[16] = {};
  socklen_t bytes = sizeof control;
  getsockopt(both.ours.get(), IPPROTO_TCP, TCP_CONGESTION, control, &bytes);
  EXPECT_STREQ(control, "reno");
}

TEST(Socket, IsReadableWhenAsMuchHasComeAsItWaitsForOrTheEnd) {
  Accepting both;
  set_low_water(both.ours.get(), 3);
  both.say("ab");
  EXPECT_FALSE(both.readable());
  both.say("c");
  EXPECT_TRUE(both.readable());
  set_low_water(both.ours.get(), 10);
  EXPECT_FALSE(both.readable());
  both.theirs.reset();
  EXPECT_TRUE(both.readable());
}

/// Makes the socket's system drop all received packets from now on, as if its machine were gone.
void lose_the_machine_of(const UniqueFd& socket) {
  sock_filter drop_all = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog program{1, &drop_all};
  ASSERT_EQ(setsockopt(socket.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program), 0);
}

/// Sends until the buffers are full.
void fill_the_room_of(const Accepting& connection) {
  const std::vector<char> bytes(64 * limits::KiB);
  while (send(connection.ours.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) continue;
}

TEST(Socket, DistinguishesAnUnresponsiveSystemFromAProcessThatDoesNotRead) {
  const Accepting reading_nothing;
  const Accepting gone;
  const Accepting gone_without_room;
  fill_the_room_of(reading_nothing);
  fill_the_room_of(gone_without_room);
  lose_the_machine_of(gone.theirs);
  lose_the_machine_of(gone_without_room.theirs);
  ASSERT_EQ(send(gone.ours.get(), "x", 1, MSG_NOSIGNAL), 1);
  EXPECT_FALSE(answers_nothing(gone.ours.get())) << "it has had no time to answer";
  EXPECT_FALSE(answers_nothing(gone_without_room.ours.get())) << "it has had no time to answer";
  for (const Accepting* const lost : {&gone, &gone_without_room}) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!answers_nothing(lost->ours.get()) && std::chrono::steady_clock::now() < deadline)
      poll(nullptr, 0, 10);
    EXPECT_TRUE(answers_nothing(lost->ours.get()));
    EXPECT_FALSE(answers_nothing(reading_nothing.ours.get())) << "its system answers each time";
  }
}

/// A Unix socket that may receive descriptors, as on systems before Linux 6.16. Also a TCP connection. The
/// last close of its descriptor waits for one minute.
class PassedDescriptors : public testing::Test {
 protected:
  PassedDescriptors() {
    int pair[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    ours = UniqueFd(pair[0], true);
    theirs = UniqueFd(pair[1]);
    fill_the_room_of(tcp_);
    const linger waits{.l_onoff = 1, .l_linger = 60};
    EXPECT_EQ(setsockopt(tcp_.ours.get(), SOL_SOCKET, SO_LINGER, &waits, sizeof waits), 0);
  }
  ~PassedDescriptors() override { tcp_.theirs.reset(); }  // releases threads that still wait for the close
  /// Sends the descriptor with one byte, and closes the own one.
  void pass_over(const UniqueFd& socket) {
    char byte = 'x';
    iovec part{&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    const int descriptor = tcp_.ours.get();
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    ASSERT_EQ(sendmsg(socket.get(), &message, 0), 1);
    tcp_.ours.reset();  // the passed descriptor is the last one
  }
  /// Returns true if the other end of the socket is closed within 20 s.
  static bool is_hung_up(const UniqueFd& socket) {
    constexpr int patience_ms = 20'000;
    pollfd asked{socket.get(), 0, 0};
    return poll(&asked, 1, patience_ms) == 1 && (asked.revents & POLLHUP) != 0;
  }
  /// Returns true if more than 20 s have passed since the last call or the start.
  [[nodiscard]] bool took_long() {
    const auto before = std::exchange(began_, std::chrono::steady_clock::now());
    return began_ - before > std::chrono::seconds(20);
  }

  UniqueFd ours;
  UniqueFd theirs;
  std::array<std::byte, 16> bytes{};

 private:
  Accepting tcp_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

TEST_F(PassedDescriptors, AreNeitherReadNorWaitedFor) {
  EXPECT_EQ(receive(ours, bytes), -1);
  EXPECT_EQ(errno, EAGAIN);
  ASSERT_EQ(send(theirs.get(), "abc", 3, 0), 3);
  EXPECT_EQ(receive(ours, bytes), 3);
  EXPECT_EQ(as_text(ByteView(bytes).first(3)), "abc");
  pass_over(theirs);
  EXPECT_EQ(receive(ours, bytes), -1);
  EXPECT_EQ(errno, EPROTO);
  EXPECT_FALSE(receive_wakes(ours));
  ours.reset();
  EXPECT_FALSE(took_long());
  EXPECT_TRUE(is_hung_up(theirs));
}

TEST_F(PassedDescriptors, UnreadDescriptorsDoNotBlock) {
  ASSERT_EQ(send(theirs.get(), "abc", 3, 0), 3);
  pass_over(theirs);
  ours.reset();
  EXPECT_FALSE(took_long());
  EXPECT_TRUE(is_hung_up(theirs));
}

TEST_F(PassedDescriptors, AreNotWaitedForInAConnectionThatWasNotAccepted) {
  const test::TempDir directory;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = directory / "s.sock";
  ASSERT_LT(path.size(), sizeof address.sun_path);
  std::copy(path.begin(), path.end(), address.sun_path);
  UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), true);
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener.get(), 8), 0);
  const UniqueFd knocking(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(knocking.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  pass_over(knocking);
  listener.reset();
  EXPECT_FALSE(took_long());
  EXPECT_TRUE(is_hung_up(knocking));
}

TEST_F(PassedDescriptors, ASocketWithNothingToReadIsClosedImmediately) {
  ours.reset();
  pollfd asked{theirs.get(), 0, 0};
  EXPECT_EQ(poll(&asked, 1, 0), 1);
}

}  // namespace
}  // namespace lightq::broker
