/// Tests of the operating system's sockets: endpoint/socket.
#include "broker/endpoint/socket.hpp"

#include <gtest/gtest.h>

#include "support/temp_dir.hpp"

namespace lightq::broker {
namespace {

TEST(Socket, ANameOfBothKindsMeansIpv4) {
  EXPECT_EQ(resolve_host("localhost").value_or_throw(), "127.0.0.1");
  EXPECT_EQ(resolve_host("127.0.0.1").value_or_throw(), "127.0.0.1");
  EXPECT_EQ(resolve_host("::1").value_or_throw(), "::1");
  EXPECT_EQ(resolve_host("no such host").error().code, ErrorCode::invalid_argument);
}

TEST(Socket, TellsASocketFileInUseFromOneLeftBehind) {
  const test::TempDir directory;
  const std::string path = directory / "s.sock";
  EXPECT_FALSE(is_listened_on(path));
  {
    const auto socket = listen_unix(path).value_or_throw();
    EXPECT_TRUE(is_listened_on(path));
  }
  EXPECT_FALSE(is_listened_on(path)) << "the file is still there";
  EXPECT_TRUE(listen_unix(path).ok());
}

}  // namespace
}  // namespace lightq::broker
