/// Tests of the rule for which addresses are this machine's own.
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <unistd.h>

#include <array>
#include <string>

#include <lightq/base/loopback.hpp>

namespace lightq::test {
namespace {

sockaddr_storage address_of(const char* text) {
  sockaddr_storage address{};
  sockaddr_in ipv4{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {}, .sin_zero = {}};
  sockaddr_in6 ipv6{};
  ipv6.sin6_family = AF_INET6;
  if (inet_pton(AF_INET, text, &ipv4.sin_addr) == 1) {
    std::memcpy(&address, &ipv4, sizeof ipv4);
  } else if (inet_pton(AF_INET6, text, &ipv6.sin6_addr) == 1) {
    std::memcpy(&address, &ipv6, sizeof ipv6);
  }
  return address;
}

TEST(Loopback, MatchesTheRfcs) {
  for (const char* text : {"127.0.0.1", "127.255.0.3", "::1", "::ffff:127.0.0.1"})
    EXPECT_TRUE(is_loopback(address_of(text))) << text;
  for (const char* text :
       {"128.0.0.1", "10.0.0.127", "0.0.0.0", "::", "::2", "7f00::1", "::ffff:10.0.0.1", "::127.0.0.1"})
    EXPECT_FALSE(is_loopback(address_of(text))) << text;
  sockaddr_storage unix_socket{};
  unix_socket.ss_family = AF_UNIX;
  EXPECT_FALSE(is_loopback(unix_socket));
}

std::string congestion_control(int descriptor) {
  std::array<char, 16> name{};
  socklen_t bytes = name.size();
  return getsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, name.data(), &bytes) == 0 ? name.data() : "";
}

TEST(Loopback, IsSentOnWithoutPacingAndOtherNetworksAsTheSystemSays) {
  const int descriptor = socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_GE(descriptor, 0);
  const std::string before = congestion_control(descriptor);
  send_unpaced_on_loopback(descriptor, address_of("10.0.0.1"));
  EXPECT_EQ(congestion_control(descriptor), before);
  send_unpaced_on_loopback(descriptor, address_of("127.0.0.1"));
  EXPECT_EQ(congestion_control(descriptor), "reno");
  close(descriptor);
}

}  // namespace
}  // namespace lightq::test
