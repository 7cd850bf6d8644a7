/// Tests of expiry with random messages, consumers, clocks and restarts. A model lists the messages that are
/// not settled.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "delivery/expiry/expiry_world.hpp"
#include "support/random.hpp"

namespace lightq::broker {
namespace {

using std::chrono::milliseconds;
using test::asked;
using test::ExpiryWorld;
using test::Member;
using test::Random;
using test::TtlMessage;

constexpr std::int64_t never_us = std::numeric_limits<std::int64_t>::max();

/// A message that a group has not settled.
struct Unsettled {
  std::int64_t own_expiry_us = never_us;
  std::int64_t appended_us = 0;
  bool in_flight = false;
  bool ended = false;  // it was not in flight, and had expired or left the log
  Member* holder = nullptr;
};

/// The topic of a model.
struct ModelTopic {
  bool keeps = false;  ///< its group keeps expired messages for the dead-letter topic
  bool drops = false;  ///< its ring is small, and drops the oldest messages
};

class ExpiryModel {
 public:
  ExpiryModel(Random& random, ModelTopic of)
      : random_(random),
        keeps_(of.keeps),
        drops_(of.drops),
        world_(0, of.drops ? 8 * limits::KiB : 4 * limits::MiB,
               of.drops ? protocol::Overflow::drop_oldest : protocol::Overflow::block) {
    world_.topic->open_group();
    world_.after_dispatch = [this] { check_delivered(); };
    if (keeps_) {
      settings_.dead_letter_topic = "letters";
      settings_.dead_letter_expired = true;
      settings_.dead_waiting_max = 20;
    }
    set();
  }

  void step() {
    const std::uint64_t choice = random_.below(100);
    if (choice < 25)
      publish();
    else if (choice < 30)
      join();
    else if (choice < 33)
      leave();
    else if (choice < 50)
      acknowledge();
    else if (choice < 60)
      reject();
    else if (choice < 62)
      change_ttl();
    else if (choice < 64)
      step_clock();
    else if (choice < 66)
      restart();
    else if (choice < 75)
      transfer();
    else
      wait();
    settle();
    check();
  }
  /// Lets everything end. Then each message was acknowledged or has expired.
  void finish() {
    for (const auto& member : members_) world_.leave(*member);
    for (const auto& member : members_) note_left(*member);
    members_.clear();
    join();
    for (int round = 0; round < 10'000 && world_.stats().pending != 0; ++round) {
      transfer();
      world_.live(milliseconds(1'000));
      take();
      acknowledge_all();
    }
    settle();
    EXPECT_EQ(world_.stats().pending, 0U);
    check_sum();
    EXPECT_TRUE(!keeps_ || drops_ || letters_ == expired_before_ + world_.stats().expired);
  }
  /// Returns how many messages were lost.
  [[nodiscard]] std::uint64_t lost() const { return lost_before_ + world_.stats().lost; }

 private:
  [[nodiscard]] std::int64_t expiry_of_message(const Unsettled& message) const {
    if (ttl_ms_ == 0) return message.own_expiry_us;
    return std::min(message.own_expiry_us, message.appended_us + ttl_ms_ * 1000);
  }
  void set() { world_.topic->groups().set_settings("default", {settings_, TopicId{9}}); }

  void publish() {
    std::vector<TtlMessage> messages(random_.between(1, 20));
    for (TtlMessage& each : messages) {
      if (random_.one_in(3)) continue;
      const std::int64_t longest[] = {50, 2'000, 60'000, 20'000'000};
      each.ttl_ms = static_cast<std::int64_t>(
          random_.between(1, static_cast<std::uint64_t>(longest[random_.below(4)])));
    }
    if (random_.one_in(4)) std::ranges::fill(messages, TtlMessage{});
    const Offset first = world_.log.next_offset();
    const auto codec = random_.one_in(3) ? Codec::lz4 : Codec::none;
    if (world_.publish(messages, codec) != PublishOutcome::accepted) return;
    published_ += messages.size();
    for (std::size_t i = 0; i < messages.size(); ++i) {
      Unsettled& added = unsettled_[(first + i).value];
      added.appended_us = world_.wall.us;
      if (messages[i].ttl_ms != 0) added.own_expiry_us = world_.wall.us + messages[i].ttl_ms * 1000;
    }
  }
  void join() {
    if (members_.size() > 3) return;
    auto open = asked();
    open.credit.messages = random_.between(1, 40);
    open.ack_timeout_ms = 3'600'000;
    members_.push_back(std::make_unique<Member>());
    ASSERT_EQ(world_.join(*members_.back(), open), ClientError::none);
  }
  Member* some_member() {
    return members_.empty() ? nullptr : members_[random_.below(members_.size())].get();
  }
  void note_left(Member& member) {
    for (auto& [offset, message] : unsettled_) {
      if (message.holder == &member) message.in_flight = false;
      if (message.holder == &member) message.holder = nullptr;
    }
  }
  void leave() {
    Member* const member = some_member();
    if (member == nullptr) return;
    take();
    world_.leave(*member);
    note_left(*member);
    std::erase_if(members_, [&](const auto& each) { return each.get() == member; });
  }
  /// Returns some messages of a member.
  std::vector<std::uint64_t> some_of(const Member& member) {
    std::vector<std::uint64_t> chosen;
    for (const auto& [offset, message] : unsettled_) {
      if (message.holder == &member && random_.one_in(2)) chosen.push_back(offset);
    }
    return chosen;
  }
  void acknowledge() {
    Member* const member = some_member();
    if (member == nullptr) return;
    for (const std::uint64_t offset : some_of(*member)) acknowledge(*member, offset);
    static_cast<void>(member->member->add_credit({random_.below(20), 0}));
    member->member->wake();
  }
  void acknowledge(Member& member, std::uint64_t offset) {
    member.group->acknowledge(*member.member, {std::nullopt, {{Offset{offset}, Offset{offset + 1}}}});
    unsettled_.erase(offset);
    ++acknowledged_;
  }
  void acknowledge_all() {
    for (const auto& member : members_) {
      std::vector<std::uint64_t> all;
      for (const auto& [offset, message] : unsettled_) {
        if (message.holder == member.get()) all.push_back(offset);
      }
      for (const std::uint64_t offset : all) acknowledge(*member, offset);
      static_cast<void>(member->member->add_credit({100, 0}));
      member->member->wake();
    }
  }
  void reject() {
    Member* const member = some_member();
    if (member == nullptr) return;
    for (const std::uint64_t offset : some_of(*member)) {
      Rejection rejection{static_cast<std::uint32_t>(random_.one_in(2) ? 0 : random_.below(10'000)),
                          {{Offset{offset}, Offset{offset + 1}}}};
      if (random_.one_in(3)) {
        rejection.kind = RejectKind::release;
        rejection.delay_ms = 0;
      }
      member->group->reject(*member->member, rejection, world_.now);
      unsettled_[offset].in_flight = false;
      unsettled_[offset].holder = nullptr;
    }
  }
  void change_ttl() {
    ttl_ms_ = random_.one_in(2) ? 0 : static_cast<std::int64_t>(random_.between(1'000, 100'000));
    world_.topic->expiry().set_ttl(static_cast<std::uint64_t>(ttl_ms_));
    world_.settings.message_ttl_ms = static_cast<std::uint64_t>(ttl_ms_);
  }
  /// Sets the clock forward, or back by less than a second: a longer step back would keep the topic's time
  /// from acting on messages that were appended before it.
  void step_clock() {
    if (random_.one_in(3)) {
      world_.wall.us += static_cast<std::int64_t>(random_.below(10'000'000));
    } else {
      world_.wall.us -= static_cast<std::int64_t>(random_.below(300'000));
    }
  }
  void restart() {
    take();
    note_ended();
    for (const auto& member : members_) {
      note_left(*member);
      world_.leave(*member);
    }
    members_.clear();
    settle();
    note_ended();
    // The group counts messages again that it has not come to.
    std::uint64_t ahead = 0;
    const Offset next = world_.topic->groups().plain()->next();
    if (const ExpiryIndex* const expiry = world_.topic->expiry().index())
      ahead = expiry->expired().count_in({next, world_.log.next_offset()});
    const Offset first = world_.log.first_offset();
    expired_before_ += world_.stats().expired - ahead;
    lost_before_ += world_.stats().lost - (next < first ? distance(next, first) : 0);
    expired_known_ = lost_known_ = 0;
    world_.restart();
    set();
  }
  void transfer() {
    if (!keeps_) return;
    GroupDead dead = world_.topic->groups().plain()->dead();
    if (dead.begin(random_.between(1, 10), TopicId{9}) == 0) return;
    for (const Transfer& each : dead.under_way()) {
      ASSERT_TRUE(dead.done(dead.incarnation(), each.number));
      ++letters_;
      unsettled_.erase(each.message.offset.value);
    }
  }
  void wait() { world_.live(milliseconds(random_.below(random_.one_in(5) ? 20'000 : 500))); }

  /// Takes the messages that were delivered.
  void take() {
    for (const auto& member : members_) {
      for (const auto& frame : std::exchange(member->consumer.frames, {})) {
        for (Offset at = frame.range.begin; at < frame.range.end; at = at + 1) {
          const auto message = unsettled_.find(at.value);
          ASSERT_NE(message, unsettled_.end()) << at.value;
          ASSERT_FALSE(message->second.in_flight) << at.value;
          message->second.in_flight = true;
          message->second.holder = member.get();
        }
      }
    }
  }
  /// Dispatches without any time passing.
  void settle() { world_.dispatch(); }
  /// Called after each dispatch: no message had expired when it was delivered.
  void check_delivered() {
    for (const auto& member : members_) {
      for (const auto& frame : member->consumer.frames) {
        for (Offset at = frame.range.begin; at < frame.range.end; at = at + 1) {
          ASSERT_LT(world_.wall.us, expiry_of_message(unsettled_[at.value])) << at.value;
        }
      }
    }
    take();
  }
  void check() {
    const auto stats = world_.stats();
    ASSERT_EQ(stats.pending,
              stats.ready + stats.in_flight + stats.retrying + stats.parked + stats.dead_waiting);
    check_sum();
    ASSERT_LE(expired_known_, stats.expired);
    ASSERT_LE(lost_known_, stats.lost);
    expired_known_ = stats.expired;
    lost_known_ = stats.lost;
    std::uint64_t in_flight = 0;
    std::uint64_t alive = 0;
    std::uint64_t has_expired = 0;
    note_ended();
    for (const auto& [offset, message] : unsettled_) {
      if (message.in_flight) {
        ++in_flight;
      } else if (!message.ended && world_.wall.us < expiry_of_message(message)) {
        ++alive;
      } else {
        ++has_expired;
      }
    }
    ASSERT_EQ(stats.in_flight, in_flight);
    ASSERT_LE(alive, stats.ready + stats.retrying);
    ASSERT_LE(stats.ready + stats.retrying, alive + has_expired);
    if (random_.one_in(10)) check_in_time();
  }
  /// Checks that each message is pending or has ended in one way.
  void check_sum() {
    const auto stats = world_.stats();
    const std::uint64_t finished = keeps_ ? letters_ : expired_before_ + stats.expired;
    ASSERT_EQ(acknowledged_ + finished + lost() + stats.pending, published_);
    ASSERT_TRUE(drops_ || lost() == 0);
    ASSERT_LE(world_.topic->stats(world_.wall).dropped, stats.lost);
  }
  /// Notes which messages have expired for good: no later change of the clock or the time to live revives
  /// them.
  void note_ended() {
    const ExpiryIndex* const expiry = world_.topic->expiry().index();
    for (auto& [offset, message] : unsettled_) {
      if (message.in_flight) continue;
      message.ended |= Offset{offset} < world_.log.first_offset() ||
                       (expiry != nullptr && expiry->expired().contains(Offset{offset}));
    }
  }
  /// Checks that messages which have expired by now are finished a second later.
  void check_in_time() {
    std::map<std::uint64_t, bool> due;
    for (const auto& [offset, message] : unsettled_) {
      if (!message.in_flight && expiry_of_message(message) <= world_.wall.us) due[offset] = true;
    }
    world_.live(milliseconds(1'000));
    take();
    note_ended();
    for (const auto& [offset, is_due] : due) {
      ASSERT_FALSE(unsettled_[offset].in_flight) << offset;
      if (!keeps_) unsettled_.erase(offset);
    }
    const auto stats = world_.stats();
    std::uint64_t alive = 0;
    for (const auto& [offset, message] : unsettled_)
      alive += message.in_flight || !due.contains(offset) ? 1 : 0;
    ASSERT_LE(stats.ready + stats.retrying + stats.in_flight, alive);
  }

  Random& random_;
  const bool keeps_;
  const bool drops_;
  ExpiryWorld world_;
  protocol::GroupSettings settings_;
  std::int64_t ttl_ms_ = 0;
  std::vector<std::unique_ptr<Member>> members_;
  std::map<std::uint64_t, Unsettled> unsettled_;  // by offset; expired ones may stay
  std::uint64_t published_ = 0;
  std::uint64_t acknowledged_ = 0;
  std::uint64_t expired_before_ = 0;  // before the last restart
  std::uint64_t lost_before_ = 0;
  std::uint64_t expired_known_ = 0;  // at the last check since then
  std::uint64_t lost_known_ = 0;
  std::uint64_t letters_ = 0;
};

void run_models(ModelTopic of) {
  std::uint64_t lost = 0;
  for (int series = 0; series < 20; ++series) {
    Random random(series);
    ExpiryModel model(random, of);
    for (int step = 0; step < 1'500; ++step) {
      model.step();
      if (testing::Test::HasFatalFailure()) FAIL() << "step " << step << " of series " << series;
    }
    model.finish();
    if (testing::Test::HasFailure()) FAIL() << "series " << series;
    lost += model.lost();
  }
  EXPECT_EQ(lost > 1'000, of.drops) << lost << " messages were lost";
}

TEST(ExpiryRandomTest, EachMessageIsAcknowledgedOrExpiresOnce) {
  run_models({});
}

TEST(ExpiryRandomTest, EachMessageIsAcknowledgedOrBecomesALetterOnce) {
  run_models({.keeps = true});
}

TEST(ExpiryRandomTest, EachMessageIsAcknowledgedExpiresOrIsLostOnce) {
  run_models({.drops = true});
}

TEST(ExpiryRandomTest, EachMessageIsAcknowledgedBecomesALetterOrIsLostOnce) {
  run_models({.keeps = true, .drops = true});
}

}  // namespace
}  // namespace lightq::broker
