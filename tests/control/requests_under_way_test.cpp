/// Tests of control/requests_under_way: the quotas for requests under way.
#include "control/requests_under_way.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lightq::broker {
namespace {

using Turn = RequestsUnderWay::Request;

TEST(RequestsUnderWay, OneSourceHasAQuarterAndAllTogetherTheWhole) {
  RequestsUnderWay under_way({.requests_waiting_max = 8});
  std::vector<Turn> requests;
  for (const std::string source : {"a", "b", "c", "d"}) {
    for (int i = 0; i < 2; ++i) {
      EXPECT_FALSE(under_way.objection_to(source)) << source << i;
      under_way.enter(requests.emplace_back(Turn{source}));
    }
    EXPECT_EQ(under_way.objection_to(source), Limit::requests_waiting_per_source_max);
  }
  EXPECT_EQ(under_way.objection_to("e"), Limit::requests_waiting_max);
  under_way.leave(requests.front());
  EXPECT_FALSE(under_way.objection_to("e"));
  EXPECT_FALSE(under_way.objection_to("a"));
}

TEST(RequestsUnderWay, OneUserHasAQuarterFromAllSources) {
  RequestsUnderWay under_way({.requests_waiting_max = 8});
  Turn one{"a"};
  Turn two{"b"};
  Turn three{"c"};
  for (Turn* const each : {&one, &two, &three}) under_way.enter(*each);
  EXPECT_TRUE(under_way.belongs_to(one, 7));
  EXPECT_TRUE(under_way.belongs_to(one, 7)) << "said again";
  EXPECT_TRUE(under_way.belongs_to(two, 7));
  EXPECT_FALSE(under_way.belongs_to(three, 7));
  EXPECT_TRUE(under_way.belongs_to(three, 8)) << "another user";
  EXPECT_EQ(under_way.of_user(7), 2U);
  EXPECT_EQ(under_way.total(), 3U);
  under_way.leave(one);
  under_way.leave(one);
  EXPECT_EQ(under_way.of_user(7), 1U);
  EXPECT_TRUE(under_way.belongs_to(three, 7));
  EXPECT_EQ(under_way.of_user(8), 0U);
  EXPECT_EQ(under_way.total(), 2U);
}

/// Enters requests of the user from `source` until one is refused. Returns the number of accepted requests.
std::size_t taken_by(RequestsUnderWay& under_way, std::vector<Turn>& requests, std::uint64_t holder,
                     const std::string& source = "a") {
  std::size_t taken = 0;
  while (!under_way.objection_to(source)) {
    Turn& request = requests.emplace_back(Turn{source});
    under_way.enter(request);
    if (!under_way.belongs_to(request, holder)) {
      under_way.leave(request);
      break;
    }
    ++taken;
  }
  return taken;
}

TEST(RequestsUnderWay, AUserWithHalfOfASourcesPartCannotUseTheReserve) {
  RequestsUnderWay under_way({.requests_waiting_max = 256});
  std::vector<Turn> requests;
  EXPECT_EQ(taken_by(under_way, requests, 7), 56U) << "of 64";
  EXPECT_EQ(taken_by(under_way, requests, 8), 8U);
  EXPECT_EQ(under_way.objection_to("a"), Limit::requests_waiting_per_source_max);
  EXPECT_EQ(taken_by(under_way, requests, 7, "b"), 8U) << "a quarter of all";
  EXPECT_EQ(taken_by(under_way, requests, 9, "b"), 48U) << "he has not half of it before";
}

TEST(RequestsUnderWay, LeavesOneOfAFewPlacesToOthers) {
  RequestsUnderWay under_way({.requests_waiting_max = 8});
  std::vector<Turn> requests;
  EXPECT_EQ(taken_by(under_way, requests, 7), 1U);
  EXPECT_EQ(taken_by(under_way, requests, 8), 1U);
  RequestsUnderWay one({.requests_waiting_max = 4});
  EXPECT_EQ(taken_by(one, requests, 7), 1U) << "of one none";
}

TEST(RequestsUnderWay, TheAdministratorIsBoundByItsSourceAndTheWhole) {
  RequestsUnderWay under_way({.requests_waiting_max = 8});
  std::vector<Turn> requests(5, Turn{"a"});
  for (Turn& each : requests) {
    under_way.enter(each);
    EXPECT_TRUE(under_way.belongs_to(each, 0));
  }
}

TEST(RequestsUnderWay, AWaitingRequestCountsForItsUserOnlyAfterwards) {
  RequestsUnderWay under_way({.requests_waiting_max = 8});
  Turn request{"a"};
  under_way.enter(request);
  under_way.leave(request);
  EXPECT_TRUE(under_way.belongs_to(request, 7));
  EXPECT_EQ(under_way.total() + under_way.of("a") + under_way.of_user(7), 0U);
  under_way.enter(request);
  EXPECT_EQ(under_way.of_user(7), 1U);
  EXPECT_EQ(under_way.of("a"), 1U);
}

}  // namespace
}  // namespace lightq::broker
