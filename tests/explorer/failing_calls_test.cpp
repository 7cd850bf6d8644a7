/// Lets each call of each operation fail once in every way: the log keeps its promises.
#include "explorer/failing_calls.hpp"

#include <gtest/gtest.h>

#include <iostream>

#include "support/random.hpp"

namespace lightq::test {
namespace {

TEST(FailingCallsTest, NoPromiseIsBrokenWhicheverCallFails) {
  const Random random;
  const FailingCallsResult result = FailingCalls(random.seed()).run();
  std::cout << result.cases << " failing calls, " << result.states << " power cuts after them\n";
  EXPECT_EQ(result.violation.value_or(""), "");
  EXPECT_GT(result.cases, 100U);
}

}  // namespace
}  // namespace lightq::test
