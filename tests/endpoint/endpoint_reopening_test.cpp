/// Tests of endpoints that a start cannot open again: plain/endpoint_set_reopening.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "endpoint/endpoint_set_harness.hpp"
#include "support/no_descriptors.hpp"

namespace lightq::broker {
namespace {

using lightq::test::NoDescriptors;
using protocol::JoinType;
using testing::ElementsAre;
using testing::IsEmpty;

class Reopening : public test::EndpointSetTest {
 protected:
  Reopening() : EndpointSetTest(true) {
    const auto free = listen_tcp("127.0.0.1", 0);
    record.port = free->port;
    for (const char* payload : {"0", "1", "2"}) put(payload);
  }
  void fail_to_reopen(EndpointRole role) {
    record.role = role;
    const NoDescriptors none;
    EXPECT_FALSE(set_->reopen(record, Offset{1}).ok());
  }
  [[nodiscard]] std::string uri() const { return "tcp://127.0.0.1:" + std::to_string(record.port); }
  [[nodiscard]] std::vector<std::string> cursors() const {
    std::vector<std::string> found;
    for (const auto& cursor : set_->subscriber_cursors())
      found.push_back(cursor.name + " " + std::to_string(cursor.offset.value));
    return found;
  }

  EndpointRecord record{.id = 100, .topic = TopicId{1}, .role = EndpointRole::sub, .port = 0};
};

TEST_F(Reopening, WithoutADescriptorASubscribersEndpointKeepsItsCursorAndOpensLater) {
  fail_to_reopen(EndpointRole::sub);
  EXPECT_THAT(cursors(), ElementsAre("sub:100 1"));
  const auto subscribers = stats().subscribers;
  ASSERT_EQ(subscribers.size(), 1U);
  EXPECT_EQ(subscribers[0].bind_uri, uri());
  auto subscriber = connect(zmq::socket_type::sub, uri());
  EXPECT_THAT(receive(subscriber, 2), ElementsAre("1", "2"));
  EXPECT_THAT(closed_, IsEmpty());
  EXPECT_THAT(changed_, IsEmpty()) << "at its old port";
  EXPECT_EQ(stats().subscribers.size(), 1U);
}

TEST_F(Reopening, WithoutItsDirectoryALocalEndpointOpensLater) {
  settings_.ipc_directory = directory_ / "later";
  record.transport = protocol::Transport::ipc;
  record.port = 0;
  ASSERT_FALSE(set_->reopen(record, Offset{0}).ok());
  EXPECT_THAT(cursors(), ElementsAre("sub:100 0"));
  std::filesystem::create_directory(directory_ / "later");
  EXPECT_TRUE(run_until([&] { return std::filesystem::exists(directory_ / "later/e100.sock"); }));
  EXPECT_THAT(closed_, IsEmpty());
}

TEST_F(Reopening, AJoinOfAProducerReopensTheExistingEndpoint) {
  fail_to_reopen(EndpointRole::produce);
  const auto joined = set_->join(JoinType::push, protocol::Transport::tcp);
  ASSERT_TRUE(joined.ok());
  EXPECT_EQ(joined->bind_uri, uri());
  EXPECT_FALSE(joined->is_new);
}

TEST_F(Reopening, AnEndpointThatCannotBeOpenedCanBeLeft) {
  fail_to_reopen(EndpointRole::sub);
  EXPECT_TRUE(set_->leave(uri(), test::manager).ok());
  EXPECT_THAT(closed_, ElementsAre(100U));
  EXPECT_THAT(cursors(), IsEmpty());
  EXPECT_THAT(stats().subscribers, IsEmpty());
  EXPECT_FALSE(set_->leave(uri(), test::manager).ok());
}

TEST_F(Reopening, AStopLeavesItToTheNextStartAndADeletionRemovesIt) {
  fail_to_reopen(EndpointRole::sub);
  set_->stop_accepting();
  set_->close_all(false);
  EXPECT_THAT(closed_, IsEmpty());
  set_ = std::make_unique<EndpointSet>(context_, topic_, *this, *this);
  fail_to_reopen(EndpointRole::sub);
  set_->close_all(true);
  EXPECT_THAT(closed_, ElementsAre(100U));
}

}  // namespace
}  // namespace lightq::broker
