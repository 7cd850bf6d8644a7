/// Tests of how a reactor slices expensive work.
#include "net/turn_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace lightq::broker {
namespace {

constexpr std::uint64_t a_turn = TurnQueue::turn_bytes;

/// Does `pieces` pieces of work. Each piece takes half a turn.
class Worker final : public TurnQueue::Waiter {
 public:
  Worker(TurnQueue& queue, std::uint64_t user, int pieces, std::function<void(Worker&)> did)
      : queue_(queue), user_(user), pieces_(pieces), did_(std::move(did)) {}
  ~Worker() override { queue_.forget(*this); }
  void on_turn() override {
    while (pieces_ > 0 && queue_.ask(*this, user_)) {
      --pieces_;
      did_(*this);
      queue_.spend(a_turn / 2);
    }
  }
  [[nodiscard]] std::uint64_t user() const { return user_; }

 private:
  TurnQueue& queue_;
  const std::uint64_t user_;
  int pieces_;
  std::function<void(Worker&)> did_;
};

class TurnQueueTest : public testing::Test {
 protected:
  void add(std::uint64_t user, int pieces) {
    workers_.push_back(std::make_unique<Worker>(queue_, user, pieces, [&](const Worker& worker) {
      ++done_in_turn_[loop_.turn()];
      users_.push_back(worker.user());
      if (users_.size() == all_) stop_.request_stop();
    }));
    all_ += static_cast<std::size_t>(pieces);
  }
  void run() {
    for (const auto& worker : workers_) worker->on_turn();
    loop_.run(stop_.get_token());
  }

  EventLoop loop_;
  TurnQueue queue_{loop_};
  std::stop_source stop_;
  std::size_t all_ = 0;
  std::map<std::uint64_t, int> done_in_turn_;
  std::vector<std::uint64_t> users_;  // the users in the order of their work
  std::vector<std::unique_ptr<Worker>> workers_;
};

TEST_F(TurnQueueTest, NoTurnOfTheLoopDoesMoreThanItsPart) {
  for (int i = 0; i < 40; ++i) add(7, 16);
  run();
  ASSERT_EQ(users_.size(), 640U);
  for (const auto& [turn, pieces] : done_in_turn_) EXPECT_LE(pieces, 2) << "in turn " << turn;
}

TEST_F(TurnQueueTest, AUserWithManyClientsDelaysAnotherByOneTurnEach) {
  for (int i = 0; i < 40; ++i) add(7, 16);
  add(8, 10);
  run();
  const auto last = std::find(users_.rbegin(), users_.rend(), 8U);
  EXPECT_LE(users_.rend() - last, 2 + 2 * 10 + 2) << "they take turns by user";
}

TEST_F(TurnQueueTest, ASourceThatLeavesWhileItWaitsIsForgotten) {
  add(7, 4);
  add(7, 1);
  for (const auto& worker : workers_) worker->on_turn();
  workers_.pop_back();
  all_ = 4;
  loop_.run(stop_.get_token());
  EXPECT_EQ(users_.size(), 4U);
}

}  // namespace
}  // namespace lightq::broker
