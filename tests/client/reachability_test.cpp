/// Tests of finding out immediately that an address is unreachable.
#include <lightq/detail/reachability.hpp>

#include <cerrno>
#include <chrono>
#include <string>

#include <gtest/gtest.h>

namespace lightq {
namespace {

using namespace std::chrono_literals;

TEST(Reachability, LooksNoNameUpWithoutPatience) {
  const std::string unknown = "tcp://no-such-host.invalid:1";
  EXPECT_TRUE(detail::why_unreachable(unknown, 1s).has_value());
  EXPECT_FALSE(detail::why_unreachable(unknown, 0ms).has_value()) << "a look-up may wait";
}

TEST(Reachability, ReportsThatNoBrokerListensAtANumericAddressWithoutWaiting) {
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  auto why = detail::why_unreachable("tcp://127.0.0.1:1", 0ms);
  while (!why && std::chrono::steady_clock::now() < deadline)
    why = detail::why_unreachable("tcp://127.0.0.1:1", 0ms);
  ASSERT_TRUE(why.has_value());
  EXPECT_EQ(why->system_error, ECONNREFUSED);
}

}  // namespace
}  // namespace lightq
