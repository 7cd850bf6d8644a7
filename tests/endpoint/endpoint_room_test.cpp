/// Tests of a topic's endpoints when the limits on endpoints or ports are reached.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "endpoint/endpoint_set_harness.hpp"

namespace lightq::broker {
namespace {

using namespace std::chrono_literals;
using protocol::JoinType;
using protocol::Transport;
using test::manager;
using testing::HasSubstr;

/// Permits eight endpoints. An unused endpoint can be evicted immediately.
class EndpointRoomTest : public test::EndpointSetTest {
 protected:
  explicit EndpointRoomTest(bool open = false, std::chrono::milliseconds unused_time_min = 0ms)
      : EndpointSetTest(open),
        shares_({.endpoints = 8, .ports = 8, .unused_time_min = unused_time_min}, &counts_) {
    settings_.limits_reached = &counts_;
    settings_.endpoint_shares = &shares_;
    settings_.idle_time_max = 1h;
    context_.make_room = [this](const EndpointShares::Place& lost) { set_->make_room(lost); };
  }
  ~EndpointRoomTest() override { set_->close_all(false); }

  /// Joins as this user. User 0 is the administrator.
  std::string join_as(std::uint64_t user, JoinType type = JoinType::pull) {
    return join_as(TicketHolder{.user = user, .generation = 1}, type);
  }
  std::string join_as(const TicketHolder& holder, JoinType type = JoinType::pull) {
    const auto joined = set_->join(type, Transport::ipc, protocol::ConnectionType::zmq, holder);
    return joined.ok() ? joined->bind_uri : joined.error().text();
  }

  LimitCounts counts_;
  EndpointShares shares_;
};

class CrowdedTest : public EndpointRoomTest {
 protected:
  CrowdedTest() : EndpointRoomTest(false, 1h) {}
};

class CrowdedOpenTest : public EndpointRoomTest {
 protected:
  CrowdedOpenTest() : EndpointRoomTest(true, 1h) {}
};

TEST_F(CrowdedTest, AUserLeavesTheLastEighthOfAllEndpointsToOthers) {
  EXPECT_THAT(join_as(7, JoinType::push), HasSubstr("ipc://")) << "who made the one that is shared has it";
  for (int i = 0; i < 6; ++i) EXPECT_THAT(join_as(7), HasSubstr("ipc://"));
  EXPECT_THAT(join_as(7), HasSubstr("this user has 7 of the 8 endpoints"));
  EXPECT_EQ(counts_.of(Limit::endpoints_max), 1U);
  const auto bobs = join_as(8);
  EXPECT_THAT(bobs, HasSubstr("ipc://"));
  EXPECT_THAT(join_as(0), HasSubstr("all 8 endpoints (endpoints_max) are in use"));
  ASSERT_TRUE(set_->leave(bobs, manager).ok());
  EXPECT_THAT(join_as(8), HasSubstr("ipc://"));
}

TEST_F(CrowdedOpenTest, AnonymousClientsOfAnOpenTopicShareAsOneUser) {
  const TicketHolder nobody;
  for (int i = 0; i < 7; ++i) EXPECT_THAT(join_as(nobody), HasSubstr("ipc://"));
  EXPECT_THAT(join_as(nobody), HasSubstr("anonymous clients have 7 of the 8"));
  EXPECT_THAT(join_as(8), HasSubstr("ipc://"));
}

TEST_F(CrowdedOpenTest, TheAdministratorIsNotAnonymous) {
  const TicketHolder nobody;
  for (int i = 0; i < 7; ++i) EXPECT_THAT(join_as(nobody), HasSubstr("ipc://"));
  EXPECT_THAT(join_as(0), HasSubstr("ipc://"));
  EXPECT_THAT(join_as(8), HasSubstr("all 8 endpoints (endpoints_max) are in use"));
}

TEST_F(CrowdedTest, ARememberedEndpointOpensBeyondTheLimit) {
  for (int i = 0; i < 7; ++i) join_as(7);
  ASSERT_THAT(join_as(8), HasSubstr("ipc://"));
  EndpointRecord record{
      .id = 100, .topic = TopicId{1}, .role = EndpointRole::pull, .transport = Transport::ipc};
  record.user = 8;
  ASSERT_TRUE(set_->reopen(record, std::nullopt).ok());
  EXPECT_EQ(shares_.taken(), 9U);
}

TEST_F(EndpointRoomTest, OnlyAnUnusedEndpointIsEvicted) {
  const std::string first = join_as(0);
  const auto joined = set_->join(JoinType::pull, Transport::ipc);
  tickets_by_uri_[joined->bind_uri] = *joined->ticket;
  auto puller = connect(zmq::socket_type::pull, joined->bind_uri);
  ASSERT_TRUE(run_until([&] { return stats().subscribers_count == 1; }));
  for (int i = 0; i < 6; ++i) join_as(0);
  EXPECT_TRUE(closed_.empty());
  EXPECT_THAT(join_as(8), HasSubstr("ipc://"));
  ASSERT_EQ(closed_.size(), 1U);
  EXPECT_EQ(set_->leave(first, manager).error().code, ErrorCode::endpoint_not_found);
  for (int i = 0; i < 40; ++i) EXPECT_THAT(join_as(0), HasSubstr("ipc://"));
  EXPECT_EQ(shares_.taken(), 8U);
  put("still there");
  EXPECT_THAT(receive(puller, 1), testing::ElementsAre("still there"));
  puller.close();
  ASSERT_TRUE(run_until([&] { return stats().subscribers_count == 0; }));
  for (int i = 0; i < 40; ++i) EXPECT_THAT(join_as(0), HasSubstr("ipc://"));
  EXPECT_TRUE(set_->leave(joined->bind_uri, manager).ok()) << "who was there may come back";
  EXPECT_EQ(counts_.of(Limit::endpoints_max), 0U);
}

}  // namespace
}  // namespace lightq::broker
