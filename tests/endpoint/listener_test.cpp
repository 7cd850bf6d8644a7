/// Tests of listeners: which connections they accept, and when.
#include "net/listener.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "endpoint/unauthenticated_peer.hpp"
#include "support/no_descriptors.hpp"
#include "support/temp_dir.hpp"

namespace lightq::broker {
namespace {

using namespace std::chrono_literals;
using test::UnauthenticatedPeer;

class ListenerTest : public testing::Test, public Listener::Owner {
 protected:
  ListenerTest() {
    auto socket = listen_tcp("127.0.0.1", 0).value_or_throw();
    descriptor_ = socket.descriptor.get();
    uri_ = "tcp://127.0.0.1:" + std::to_string(socket.port);
    listener_ = std::make_unique<Listener>(loop_, std::move(socket), *this, budget_);
    EXPECT_TRUE(listener_->start());
  }
  bool accepted(UniqueFd) override {
    ++accepted_;
    return !takes_places_;
  }
  void accept_failed() override { ++failed_; }
  void TearDown() override { EXPECT_EQ(failed_, failures_expected_); }

  /// Runs one turn of the loop.
  void turn() {
    std::stop_source stop;
    loop_.post_answer([&] { stop.request_stop(); });
    loop_.run(stop.get_token());
  }
  /// Runs turns until `accepted` connections have been accepted.
  bool turn_until(int accepted) {
    const auto deadline = EventLoop::Clock::now() + 5s;
    while (accepted_ < accepted && EventLoop::Clock::now() < deadline) turn();
    return accepted_ == accepted;
  }

  EventLoop loop_;
  AcceptBudget budget_{1'000'000, 512};
  std::string uri_;
  std::unique_ptr<Listener> listener_;
  int descriptor_ = -1;
  int accepted_ = 0;
  bool takes_places_ = false;  // each connection takes a place
  int failed_ = 0;
  int failures_expected_ = 0;
};

TEST_F(ListenerTest, AcceptsClients) {
  const UnauthenticatedPeer one(uri_);
  EXPECT_TRUE(turn_until(1));
  const UnauthenticatedPeer second(uri_);
  const UnauthenticatedPeer third(uri_);
  EXPECT_TRUE(turn_until(3));
}

TEST_F(ListenerTest, AcceptsOneConnectionInATurnIfItTakesAPlace) {
  const UnauthenticatedPeer one(uri_);
  const UnauthenticatedPeer second(uri_);
  takes_places_ = true;
  turn();
  EXPECT_EQ(accepted_, 1) << "so that the ends of earlier connections are noticed";
  EXPECT_TRUE(turn_until(2));
}

TEST_F(ListenerTest, DuringAFloodNewClientsWaitForAGroup) {
  bool seen_waiting = false;
  // On a slow machine the pause may end before the test can observe it.
  for (int attempt = 0; attempt < 100 && !seen_waiting; ++attempt) {
    accepted_ = 0;
    for (int i = 0; i < 100; ++i) budget_.unauthenticated_closed(AcceptBudget::Clock::now());
    const UnauthenticatedPeer first(uri_);
    const auto began = EventLoop::Clock::now();
    ASSERT_TRUE(turn_until(1));
    const UnauthenticatedPeer next(uri_);
    turn();
    seen_waiting = accepted_ == 1;
    EXPECT_TRUE(seen_waiting || EventLoop::Clock::now() - began >= 5ms);
    ASSERT_TRUE(turn_until(2)) << "nobody is left out";
  }
  EXPECT_TRUE(seen_waiting);
}

TEST_F(ListenerTest, AcceptsAgainHoweverOftenItsSocketCouldNotBeWatched) {
  const lightq::test::TempDir directory;
  const UniqueFd socket(::dup(descriptor_));
  const UniqueFd file(::open((directory / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(socket.valid() && file.valid());
  const UnauthenticatedPeer one(uri_);
  const auto fails = [this](int times) {
    const auto deadline = EventLoop::Clock::now() + 5s;
    while (failed_ < times && EventLoop::Clock::now() < deadline) turn();
    return failed_ == times;
  };
  {
    const lightq::test::NoDescriptors none;
    ASSERT_TRUE(fails(1)) << "it pauses";
  }
  // epoll does not watch regular files.
  ASSERT_EQ(::dup2(file.get(), descriptor_), descriptor_);
  ASSERT_TRUE(fails(3));
  ASSERT_EQ(::dup2(socket.get(), descriptor_), descriptor_);
  EXPECT_TRUE(turn_until(1));
  failures_expected_ = 3;
}

}  // namespace
}  // namespace lightq::broker
