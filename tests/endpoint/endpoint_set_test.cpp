/// Tests of a topic's endpoints with real ZeroMQ sockets as clients.
#include "plain/endpoint_set.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "endpoint/endpoint_set_harness.hpp"
#include "endpoint/unauthenticated_peer.hpp"
#include "zmtp/zmtp.hpp"

namespace lightq::broker {
namespace {

using namespace std::chrono_literals;
using protocol::JoinType;
using protocol::Transport;
using test::EndpointSetTest;
using test::manager;
using test::UnauthenticatedPeer;
using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(EndpointSetTest, ProducersShareAnEndpointAndConsumersDoNot) {
  EXPECT_EQ(join(JoinType::push), join(JoinType::pub));
  EXPECT_NE(join(JoinType::push), join(JoinType::push, Transport::ipc));
  EXPECT_NE(join(JoinType::pull), join(JoinType::pull));
  EXPECT_NE(join(JoinType::sub), join(JoinType::sub));
}

TEST_F(EndpointSetTest, RealSocketsPushPullAndSubscribeOverTcpAndIpc) {
  for (const Transport transport : {Transport::tcp, Transport::ipc}) {
    auto puller = connect(zmq::socket_type::pull, join(JoinType::pull, transport));
    auto subscriber = connect(zmq::socket_type::sub, join(JoinType::sub, transport));
    ASSERT_TRUE(run_until([&] { return topic_.stats().subscribers_count == 2; }));
    auto pusher = connect(zmq::socket_type::push, join(JoinType::push, transport));
    pusher.send(zmq::str_buffer("a"));
    pusher.send(zmq::str_buffer(""));
    pusher.send(zmq::buffer(std::string(300'000, 'x')));
    EXPECT_THAT(receive(puller, 3), ElementsAre("a", "", std::string(300'000, 'x')));
    EXPECT_THAT(receive(subscriber, 3), ElementsAre("a", "", std::string(300'000, 'x')));
    EXPECT_EQ(stats().publishers_count, 1U);
    EXPECT_EQ(stats().subscribers_count, 2U);
    pusher.close();
    puller.close();
    subscriber.close();
    ASSERT_TRUE(run_until([&] { return stats().publishers_count + stats().subscribers_count == 0; }));
  }
}

TEST_F(EndpointSetTest, AnUnusedEndpointClosesAndItsPortIsQuarantined) {
  settings_.idle_time_max = 50ms;
  const std::string uri = join(JoinType::pull);
  ASSERT_TRUE(run_until([&] { return !closed_.empty(); }));
  EXPECT_EQ(set_->leave(uri, manager).error().code, ErrorCode::endpoint_not_found);
  const auto port = static_cast<std::uint16_t>(std::stoi(uri.substr(uri.rfind(':') + 1)));
  for (int i = 0; i < 50; ++i) ASSERT_NE(ports_.listen({})->port, port);
}

TEST_F(EndpointSetTest, AnEndpointInUseStaysOpenAndAnotherJoinRenewsItsTime) {
  settings_.idle_time_max = 1s;
  const std::string uri = join(JoinType::push);
  {
    auto pusher = connect(zmq::socket_type::push, uri);
    ASSERT_TRUE(run_until([&] { return stats().publishers_count == 1; }));
    const auto later = EventLoop::Clock::now() + 2 * settings_.idle_time_max;
    ASSERT_TRUE(run_until([&] { return EventLoop::Clock::now() > later; }));
    EXPECT_EQ(join(JoinType::push), uri);
  }
  ASSERT_TRUE(run_until([&] { return closed_.size() == 1; }));
}

TEST_F(EndpointSetTest, AnEndpointAcceptsItsUserAndManagersOnly) {
  const auto of_user = [&](JoinType type) {
    return set_->join(type, Transport::tcp, protocol::ConnectionType::zmq, {.user = 7, .generation = 1})
        ->bind_uri;
  };
  const auto code = [&](const std::string& uri, const Leaver& by) {
    const auto left = set_->leave(uri, by);
    return left.ok() ? std::string("ok") : left.error().text();
  };
  const std::string unknown = code("tcp://127.0.0.1:1", manager);
  const auto hidden = [&](const std::string& uri) { return unknown.substr(0, unknown.find("tcp://")) + uri; };
  for (const JoinType type : {JoinType::pull, JoinType::sub}) {
    const std::string uri = of_user(type);
    EXPECT_EQ(code(uri, {.user = 8, .produces = true}), hidden(uri));
    EXPECT_EQ(code(uri, {.user = 0, .produces = true}), hidden(uri));
    EXPECT_EQ(code(uri, {.user = 7}), "ok");
    EXPECT_EQ(code(of_user(type), {.user = 8, .manages = true}), "ok");
  }
  const std::string shared = of_user(JoinType::push);
  EXPECT_EQ(code(shared, {.user = 7, .manages = true}), hidden(shared));
  EXPECT_EQ(code(shared, {.user = 8, .produces = true}), "ok");
  EXPECT_EQ(code(shared, {.user = 8, .produces = true}), "ok") << "it stays";
}

TEST_F(EndpointSetTest, AUserWithHalfOfTheEndpointsCannotUseTheReserve) {
  settings_.endpoints_max = 16;
  const auto join_as = [&](std::uint64_t user) {
    const auto joined = set_->join(JoinType::pull, Transport::tcp, protocol::ConnectionType::zmq,
                                   {.user = user, .generation = 1});
    return joined.ok() ? std::string("ok") : joined.error().text();
  };
  for (int i = 0; i < 14; ++i) ASSERT_EQ(join_as(7), "ok");
  EXPECT_THAT(join_as(7),
              testing::HasSubstr("14 endpoints of this user, and reserves 2 for users with fewer"));
  EXPECT_EQ(join_as(8), "ok");
  EXPECT_EQ(join_as(0), "ok");
  EXPECT_THAT(join_as(9), testing::HasSubstr("16 endpoints, the maximum"));
}

TEST_F(EndpointSetTest, ALeavingPullerLearnsItsDeliveredCountAndReceivesThemAll) {
  const std::string uri = join(JoinType::pull);
  auto puller = connect(zmq::socket_type::pull, uri);
  ASSERT_TRUE(run_until([&] { return topic_.groups().pullers() == 1; }));
  for (int i = 0; i < 10; ++i) put(std::to_string(i));
  const auto handed = set_->leave(uri, manager);
  ASSERT_TRUE(handed.ok());
  EXPECT_EQ(*handed, 10U);
  EXPECT_EQ(closed_.size(), 1U) << "a broker that starts now must not open it again";
  put("too late");
  EXPECT_EQ(receive(puller, 10).size(), 10U);
  puller.close();
  ASSERT_TRUE(run_until([&] { return stats().subscribers_count == 0; }));
  EXPECT_EQ(closed_.size(), 1U);
  auto next = connect(zmq::socket_type::pull, join(JoinType::pull));
  EXPECT_THAT(receive(next, 1), ElementsAre("too late"));
}

TEST_F(EndpointSetTest, OnlyConnectionsWithoutTheRightAreClosed) {
  const auto of_ann = [this](JoinType type) {
    return join(type, Transport::tcp, protocol::ConnectionType::zmq, {.user = 7, .generation = 1});
  };
  context_.access.put_user({7, 1, false, {{"t", {.produce = true, .consume = true}}}});
  const std::string others = join(JoinType::push);
  auto other = connect(zmq::socket_type::push, others);
  auto producer = connect(zmq::socket_type::push, of_ann(JoinType::push));
  auto puller = connect(zmq::socket_type::pull, of_ann(JoinType::pull));
  ASSERT_TRUE(run_until([&] { return stats().publishers_count == 2 && topic_.groups().pullers() == 1; }));
  set_->end_unpermitted();
  EXPECT_EQ(stats().publishers_count, 2U) << "nothing has changed";

  context_.access.put_user({7, 1, false, {{"t", {.consume = true}}}});
  set_->end_unpermitted();
  EXPECT_EQ(stats().publishers_count, 1U);
  EXPECT_EQ(topic_.groups().pullers(), 1U);
  ASSERT_TRUE(run_until([&] { return stats().refused_connections == 1; })) << "its ticket is refused now";
  other.send(zmq::str_buffer("of the other"), zmq::send_flags::none);
  EXPECT_THAT(receive(puller, 1), ElementsAre("of the other"));

  context_.access.put_user({7, 2, false, {{"t", {.consume = true}}}});
  set_->end_unpermitted();
  EXPECT_EQ(topic_.groups().pullers(), 0U) << "its password is another one";
  EXPECT_EQ(stats().publishers_count, 1U);
}

TEST_F(EndpointSetTest, ALeavingEndpointClosesWithItsLastConnectionEvenIfThatWasRefused) {
  context_.access.put_user({7, 1, false, {{"t", {.consume = true}}}});
  std::vector<zmq::socket_t> pullers;
  std::vector<std::string> uris;
  for (int i = 0; i < 3; ++i) {
    uris.push_back(join(JoinType::pull, Transport::tcp, protocol::ConnectionType::zmq, {7, 1}));
    pullers.push_back(connect(zmq::socket_type::pull, uris.back()));
  }
  ASSERT_TRUE(run_until([&] { return topic_.groups().pullers() == 3; }));
  for (const std::string& uri : uris) ASSERT_TRUE(set_->leave(uri, manager).ok());
  EXPECT_EQ(closed_.size(), 3U) << "no restart is to open them again";
  EXPECT_EQ(stats().subscribers_count, 3U) << "their consumers are still there";
  context_.access.remove_user(7);
  set_->end_unpermitted();
  EXPECT_EQ(closed_.size(), 3U) << "told once each";
  EXPECT_EQ(stats().subscribers_count, 0U);
  EXPECT_EQ(topic_.groups().pullers(), 0U);
}

TEST_F(EndpointSetTest, LeavingAnUnusedEndpointClosesItImmediately) {
  const std::string uri = join(JoinType::pull);
  ASSERT_TRUE(set_->leave(uri, manager).ok());
  EXPECT_EQ(closed_.size(), 1U);
  EXPECT_FALSE(set_->leave(uri, manager).ok());
}

TEST_F(EndpointSetTest, ASubscriberFindsItsPlaceAgainAfterADisconnect) {
  const std::string uri = join(JoinType::sub);
  put("before anybody connected");
  {
    auto subscriber = connect(zmq::socket_type::sub, uri);
    EXPECT_THAT(receive(subscriber, 1), ElementsAre("before anybody connected"));
  }
  ASSERT_TRUE(run_until([&] { return stats().subscribers_count == 0; }));
  put("while away");
  auto subscriber = connect(zmq::socket_type::sub, uri);
  EXPECT_THAT(receive(subscriber, 1), ElementsAre("while away"));
  EXPECT_EQ(stats().subscribers.at(0).delivered, 2U);
}

TEST_F(EndpointSetTest, ASubscriberThatUnsubscribesForAWhileGetsNothingTwice) {
  auto subscriber = connect(zmq::socket_type::sub, join(JoinType::sub));
  ASSERT_TRUE(run_until([&] { return topic_.stats().subscribers_count == 1; }));
  // Publishes more than the connection's buffers take, so that some messages are unsent.
  std::size_t put_count = 0;
  for (; put_count < 20'000 && topic_.log().stored_bytes() < limits::MiB - 10'000; ++put_count) {
    put(std::to_string(put_count) + std::string(500, 'x'));
  }
  subscriber.set(zmq::sockopt::unsubscribe, "t");
  subscriber.set(zmq::sockopt::subscribe, "t");
  std::vector<std::size_t> seen;
  ASSERT_TRUE(run_until([&] {
    topic_.dispatch();
    zmq::message_t part;
    while (subscriber.recv(part, zmq::recv_flags::dontwait)) {
      if (!part.more()) seen.push_back(std::stoul(part.to_string()));
    }
    return !seen.empty() && seen.back() + 1 == put_count;
  }));
  for (std::size_t i = 1; i < seen.size(); ++i) ASSERT_LT(seen[i - 1], seen[i]);
}

TEST_F(EndpointSetTest, ASecondSocketOnASubscribersEndpointHasItsOwnCursor) {
  const std::string uri = join(JoinType::sub);
  auto first = connect(zmq::socket_type::sub, uri);
  ASSERT_TRUE(run_until([&] { return topic_.stats().subscribers_count == 1; }));
  put("1");
  auto second = connect(zmq::socket_type::sub, uri);
  ASSERT_TRUE(run_until([&] { return topic_.stats().subscribers_count == 2; }));
  put("2");
  EXPECT_THAT(receive(first, 2), ElementsAre("1", "2"));
  EXPECT_THAT(receive(second, 1), ElementsAre("2"));
  second.close();
  ASSERT_TRUE(run_until([&] { return topic_.stats().subscribers_count == 1; }));
  put("3");
  EXPECT_THAT(receive(first, 1), ElementsAre("3"));
}

TEST_F(EndpointSetTest, ARememberedEndpointReopensItsPortOrReportsItInUse) {
  EndpointRecord record{.id = 100, .topic = TopicId{1}, .role = EndpointRole::pull, .port = 0};
  {
    const auto free = listen_tcp("127.0.0.1", 0);
    record.port = free->port;
  }
  ASSERT_TRUE(set_->reopen(record, std::nullopt).ok());
  EXPECT_TRUE(changed_.empty());
  EXPECT_TRUE(set_->leave("tcp://127.0.0.1:" + std::to_string(record.port), manager).ok());

  const auto taken = listen_tcp("127.0.0.1", 0);
  record.id = 101;
  record.port = taken->port;
  ASSERT_TRUE(set_->reopen(record, std::nullopt).ok());
  ASSERT_EQ(changed_.size(), 1U);
  EXPECT_NE(changed_[0], taken->port);
}

TEST_F(EndpointSetTest, AGreetingInPiecesIsProcessedWhenItIsComplete) {
  settings_.idle_time_max = 1h;
  const auto greeting = zmtp::greeting();
  const ByteView bytes(greeting);
  UnauthenticatedPeer slow(join(JoinType::push));
  ASSERT_TRUE(run_until([&] { return slow.heard() == zmtp::greeting_head_bytes; }));
  std::size_t said = 0;
  for (const std::size_t piece : {1U, 1U, 9U, 20U, 32U}) {
    slow.say(bytes.subspan(said, piece));
    said += piece;
    UnauthenticatedPeer other(join(JoinType::push));  // is greeted only after the earlier bytes were handled
    ASSERT_TRUE(run_until([&] { return other.greeted(); }));
    ASSERT_FALSE(slow.closed());
    EXPECT_EQ(slow.heard(), zmtp::greeting_head_bytes);
  }
  slow.say(bytes.subspan(said));
  EXPECT_TRUE(run_until([&] { return slow.heard() >= zmtp::greeting_bytes; }));
}

TEST_F(EndpointSetTest, APeerThatHasAlreadyGoneReceivesNothing) {
  UnauthenticatedPeer gone(join(JoinType::push));
  gone.finish();
  ASSERT_TRUE(run_until([&] { return gone.closed(); }));
  EXPECT_EQ(gone.heard(), 0U);
}

TEST_F(EndpointSetTest, APeerThatHasAlreadySentDataReceivesTheGreeting) {
  const auto uri = join(JoinType::push);
  UnauthenticatedPeer nonsense(uri);
  nonsense.say(as_byte_view("GET / HTTP/1.1\r\n"));
  UnauthenticatedPeer begun(uri);
  begun.say(ByteView(zmtp::greeting()).first(zmtp::greeting_head_bytes));
  UnauthenticatedPeer whole(uri);
  whole.say(zmtp::greeting());
  ASSERT_TRUE(run_until([&] { return nonsense.closed() && begun.greeted() && whole.closed(); }));
  EXPECT_EQ(nonsense.heard(), zmtp::greeting_head_bytes);
  EXPECT_FALSE(begun.closed());
  EXPECT_GE(whole.heard(), zmtp::greeting_bytes) << "without a ticket it is refused, and hears by whom";
}

TEST_F(EndpointSetTest, DuringAFloodMalformedPeersWaitUntilTheirTimeIsOver) {
  settings_.idle_time_max = 1h;
  settings_.unauthenticated.handshake_time = 300ms;
  const auto uri = join(JoinType::push);
  const auto crowd = [&] {
    for (int i = 0; i < 100; ++i) context_.accepts.unauthenticated_closed(EventLoop::Clock::now());
    return true;
  };
  UnauthenticatedPeer patient(uri);
  UnauthenticatedPeer leaving(uri);
  ASSERT_TRUE(run_until([&] { return crowd() && patient.greeted() && leaving.greeted(); }));
  patient.say(as_byte_view("GET / HTTP/1.1\r\n"));
  leaving.say(as_byte_view("GET / HTTP/1.1\r\n"));
  UnauthenticatedPeer other(uri);  // is greeted only after the earlier bytes were handled
  ASSERT_TRUE(run_until([&] { return crowd() && other.greeted(); }));
  leaving.finish();
  patient.say(as_byte_view("Host: a\r\n"));
  ASSERT_TRUE(run_until([&] { return crowd() && leaving.closed(); }));
  EXPECT_EQ(patient.heard(), zmtp::greeting_head_bytes);
  const auto before = EventLoop::Clock::now();
  EXPECT_TRUE(run_until([&] { return crowd() && patient.closed(); }));
  EXPECT_LT(EventLoop::Clock::now() - before, 2s);
  ASSERT_TRUE(run_until([&] { return !context_.accepts.crowded(EventLoop::Clock::now()); }));
  auto push = connect(zmq::socket_type::push, uri);
  push.send(zmq::buffer("late"));
  EXPECT_TRUE(run_until([&] { return stats().messages_received == 1; })) << "who belongs here is heard";
}

TEST_F(EndpointSetTest, ConnectionsBeyondTheLimitGetInWhenAnotherLeaves) {
  LimitCounts counts;
  settings_.connections_max = 2;
  settings_.limits_reached = &counts;
  settings_.idle_time_max = 1h;
  const auto uri = join(JoinType::push);
  UnauthenticatedPeer silent(uri);  // counts against handshakes_max
  UnauthenticatedPeer another(uri);
  auto first = connect(zmq::socket_type::push, uri);
  auto second = connect(zmq::socket_type::push, uri);
  ASSERT_TRUE(run_until([&] { return stats().publishers_count == 2; }));
  EXPECT_EQ(counts.of(Limit::connections_per_endpoint_max), 0U);
  auto third = connect(zmq::socket_type::push, uri);
  ASSERT_TRUE(run_until([&] { return counts.of(Limit::connections_per_endpoint_max) > 0; }));
  EXPECT_FALSE(silent.closed());
  ASSERT_TRUE(third.send(zmq::str_buffer("from the third"), zmq::send_flags::dontwait));
  first.send(zmq::str_buffer("from the first"), zmq::send_flags::none);
  ASSERT_TRUE(run_until([&] { return stats().messages_received == 1; }));
  EXPECT_EQ(stats().publishers_count, 2U);
  first.close();
  ASSERT_TRUE(run_until([&] { return stats().messages_received == 2; }));
  EXPECT_EQ(stats().publishers_count, 2U);
  set_->close_all(false);  // before `counts` ends
}

TEST_F(EndpointSetTest, AUserWithHalfOfTheConnectionsCannotUseTheReserve) {
  LimitCounts counts;
  settings_.connections_max = 8;
  settings_.limits_reached = &counts;
  settings_.idle_time_max = 1h;
  for (const std::uint64_t user : {7U, 8U})
    context_.access.put_user({user, 1, false, {{"t", {.produce = true}}}});
  const auto producer_of = [this](const TicketHolder& holder) {
    return connect(zmq::socket_type::push,
                   join(JoinType::push, Transport::tcp, protocol::ConnectionType::zmq, holder));
  };
  std::vector<zmq::socket_t> anns;
  for (int i = 0; i < 7; ++i) anns.push_back(producer_of({7, 1}));
  ASSERT_TRUE(run_until([&] { return stats().publishers_count == 7; }));
  EXPECT_EQ(counts.of(Limit::connections_per_endpoint_max), 0U);
  const auto once_more = set_->join(JoinType::push, Transport::tcp, protocol::ConnectionType::zmq, {7, 1});
  ASSERT_FALSE(once_more.ok()) << "a join says what the connection could not";
  EXPECT_EQ(once_more.error().code, ErrorCode::limit_reached);
  EXPECT_THAT(once_more.error().text(), HasSubstr("this user has 7 of endpoint tcp://"));
  EXPECT_EQ(counts.of(Limit::connections_per_endpoint_max), 1U);
  anns.push_back(connect(zmq::socket_type::push, tickets_by_uri_.begin()->first));
  ASSERT_TRUE(run_until([&] { return counts.of(Limit::connections_per_endpoint_max) > 1; }));
  EXPECT_EQ(stats().publishers_count, 7U);
  EXPECT_EQ(stats().refused_connections, 0U) << "its ticket is good";

  auto bob = producer_of({8, 1});
  ASSERT_TRUE(run_until([&] { return stats().publishers_count == 8; }));
  bob.send(zmq::str_buffer("of bob"), zmq::send_flags::none);
  ASSERT_TRUE(run_until([&] { return stats().messages_received == 1; }));

  // Her last socket retries all the time, and is admitted once she is below her quota.
  bob.close();
  anns.front().close();
  ASSERT_TRUE(anns.back().send(zmq::str_buffer("of ann"), zmq::send_flags::dontwait));
  EXPECT_TRUE(run_until([&] { return stats().messages_received == 2; }));
  set_->close_all(false);  // before `counts` ends
}

TEST_F(EndpointSetTest, TheAdministratorIsOnlyBoundByTheWholeLimit) {
  settings_.connections_max = 8;
  settings_.idle_time_max = 1h;
  const auto uri = join(JoinType::push);
  std::vector<zmq::socket_t> producers;
  for (int i = 0; i < 8; ++i) producers.push_back(connect(zmq::socket_type::push, uri));
  EXPECT_TRUE(run_until([&] { return stats().publishers_count == 8; }));
}

TEST_F(EndpointSetTest, AJoinReportsThatItsUserHasAllItsConnections) {
  ConnectionQuota quota(2);
  settings_.user_connections = &quota;
  settings_.idle_time_max = 1h;
  context_.access.put_user({7, 1, false, {{"t", {.produce = true, .consume = true}}}});
  const auto joined = [this](JoinType type, const TicketHolder& holder) {
    return set_->join(type, Transport::tcp, protocol::ConnectionType::zmq, holder);
  };
  const auto uri = join(JoinType::push, Transport::tcp, protocol::ConnectionType::zmq, {7, 1});
  auto first = connect(zmq::socket_type::push, uri);
  ASSERT_TRUE(run_until([&] { return stats().publishers_count == 1; }));
  EXPECT_TRUE(joined(JoinType::push, {7, 1}).ok()) << "there is room for one more";
  auto second = connect(zmq::socket_type::push, uri);
  ASSERT_TRUE(run_until([&] { return stats().publishers_count == 2; }));
  for (const JoinType type : {JoinType::push, JoinType::pull}) {
    const auto third = joined(type, {7, 1});
    ASSERT_FALSE(third.ok());
    EXPECT_EQ(third.error().code, ErrorCode::limit_reached);
    EXPECT_THAT(third.error().text(), HasSubstr("this user has 2 data connections"));
    EXPECT_TRUE(joined(type, {8, 1}).ok()) << "another has his own";
  }
  second.close();
  EXPECT_TRUE(run_until([&] { return joined(JoinType::push, {7, 1}).ok(); }));
  set_->close_all(false);  // before the quota ends
}

class OpenEndpointSetTest : public EndpointSetTest {
 protected:
  OpenEndpointSetTest() : EndpointSetTest(true) { settings_.idle_time_max = 1h; }
};

TEST_F(OpenEndpointSetTest, AnonymousClientsLeaveTheLastConnectionsToTheAdministratorAndToUsers) {
  settings_.connections_max = 8;
  context_.access.set_admin_generation(1);
  const auto uri = join(JoinType::push);
  std::vector<zmq::socket_t> peers;
  for (int i = 0; i < 9; ++i) peers.push_back(connect(zmq::socket_type::push, uri));
  ASSERT_TRUE(run_until([&] { return stats().publishers_count == 7; }));
  EXPECT_FALSE(set_->join(JoinType::push, Transport::tcp).ok());
  join(JoinType::push, Transport::tcp, protocol::ConnectionType::zmq, {0, 1});
  auto administrator = connect(zmq::socket_type::push, uri);
  EXPECT_TRUE(run_until([&] { return stats().publishers_count == 8; }));
}

TEST_F(OpenEndpointSetTest, RawConsumersCountAsAnonymousConnections) {
  ConnectionQuota quota(2);
  settings_.user_connections = &quota;
  const auto uri = join(JoinType::pull, Transport::tcp, protocol::ConnectionType::socket);
  {
    const UnauthenticatedPeer first(uri);
    const UnauthenticatedPeer second(uri);
    ASSERT_TRUE(run_until([&] { return topic_.groups().pullers() == 2; }));
    UnauthenticatedPeer third(uri);
    ASSERT_TRUE(run_until([&] { return third.closed(); }));
    EXPECT_FALSE(quota.take(FairShare::anonymous));
  }
  EXPECT_TRUE(run_until([&] { return topic_.groups().pullers() == 0; }));
  EXPECT_TRUE(quota.take(FairShare::anonymous));
  set_->close_all(false);  // before the quota ends
}

TEST_F(EndpointSetTest, TheNumberOfEndpointsOfATopicIsLimited) {
  // Records are cheap to fake, but sockets are not. So the limit is reached by ipc endpoints that share a
  // directory.
  settings_.idle_time_max = 1h;
  Result<OpenedEndpoint> last = set_->join(JoinType::pull, Transport::ipc);
  for (std::size_t i = 1; i <= limits::endpoints_per_topic_max && last.ok(); ++i) {
    last = set_->join(JoinType::pull, Transport::ipc);
  }
  ASSERT_FALSE(last.ok());
  EXPECT_EQ(last.error().code, ErrorCode::limit_reached);
}

}  // namespace
}  // namespace lightq::broker
