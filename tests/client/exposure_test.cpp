/// Tests of `stays_on_machine`: which addresses are reached without leaving this machine. A client without
/// encryption sends no password to any other address.
#include <lightq/detail/exposure.hpp>

#include <gtest/gtest.h>

#include <lightq/client.hpp>

#include "support/planted.hpp"

namespace lightq {
namespace {

TEST(Exposure, IsAbsentForLocalAddresses) {
  for (const char* const uri :
       {"ipc:///somewhere/control", "inproc://here", "tcp://127.0.0.1:5000", "tcp://127.1.2.3:5000",
        "tcp://localhost:5000", "tcp://[::1]:5000", "tcp://::1:5000", "tcp://0.0.0.0:5000", "tcp://[::]:5000",
        "tcp://[::ffff:127.0.0.1]:5000"}) {
    EXPECT_TRUE(stays_on_machine(uri)) << uri;
  }
}

TEST(Exposure, IncludesAllOtherAddresses) {
  for (const char* const uri :
       {"tcp://192.0.2.1:5000", "tcp://[2001:db8::1]:5000", "tcp://no-such-host.invalid:5000",
        "tcp://127.0.0.1.no-such-host.invalid:5000", "tcp://[::ffff:192.0.2.1]:5000",
        "tcp://127.0.0.1:0;192.0.2.1:5000", "udp://127.0.0.1:5000", "pgm://127.0.0.1;239.0.0.1:5000"}) {
    EXPECT_FALSE(stays_on_machine(uri)) << uri;
  }
}

TEST(Exposure, KeepsAClientThatKnowsAPasswordFromSayingAWord) {
  const std::string uri = "tcp://192.0.2.1:5000";
  for (const ClientOptions& options :
       {ClientOptions{.user = {"ann", planted::user_password}, .discover_credentials = false},
        ClientOptions{.admin = {"chief", planted::admin_password}, .discover_credentials = false}}) {
    const auto refused = Client::connect(uri, options);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(refused.error().message.find(uri), std::string::npos);
    EXPECT_NE(refused.error().message.find("server_key"), std::string::npos);
    planted::expect_none_in(refused.error().message);
  }
}

TEST(Exposure, KeepsBackAPasswordThatStandsInAnAddress) {
  const std::string user = std::string("ann:") + planted::user_password;
  for (const std::string& uri :
       {"tcp://" + user + "@127.0.0.1:5000", "tcp://" + user + "@192.0.2.1:5000", user + "@127.0.0.1:5000"}) {
    const auto refused = Client::connect(uri, {.discover_credentials = false});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(refused.error().message.find("must not contain a user or password"), std::string::npos);
    planted::expect_none_in(refused.error().message);
  }
}

}  // namespace
}  // namespace lightq
