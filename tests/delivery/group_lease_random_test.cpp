/// Tests of a group whose random members have leases. A model lists the messages that are not finished, with
/// their hand-outs. Also checks that a message is delivered whenever a live member could take it.
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "delivery/consumer_group_harness.hpp"
#include "delivery/consumer_groups.hpp"
#include "support/random.hpp"

namespace lightq::broker {
namespace {

using std::chrono::milliseconds;
using test::FakeConsumer;
using test::Random;

/// A message that is not finished.
struct LeasedMessage {
  std::uint32_t deliveries = 0;  // those that count, without the present one
  const void* holder = nullptr;
  std::uint32_t hand_out = 0;
  bool started = false;
  SteadyTime until = never;  // if it is started
  SteadyTime not_before{};   // the delay of a rejected message
};

struct LeaseHolder {
  FakeConsumer consumer;
  GroupMember* member = nullptr;
  std::uint32_t timeout_ms = 0;
  std::uint32_t last_hand_out = 1;
  OffsetRange window{};
  std::uint32_t window_hand_out = 0;
  bool silent = false;
  /// Messages that were taken back from it, with their last hand-out. It was not told yet that they are late.
  std::map<std::uint64_t, std::uint32_t> revoked;
};

bool has(OffsetRange range, std::uint64_t offset) {
  return range.begin <= Offset{offset} && Offset{offset} < range.end;
}

class LeaseModel {
 public:
  explicit LeaseModel(Random& random) : random_(random) { restart(); }

  void step() {
    const std::uint64_t choice = random_.below(100);
    if (choice < 16) return publish();
    if (choice < 21) return join();
    if (choice < 24) return leave();
    if (choice < 34) return start();
    if (choice < 50) return acknowledge();
    if (choice < 58) return reject();
    if (choice < 61) return extend();
    if (choice < 68) return give_credit();
    if (choice < 73) return turn_silent();
    if (choice < 77) return pass(milliseconds(random_.one_in(4) ? random_.below(4000) : random_.below(50)));
    if (choice == 77 && random_.one_in(3)) return seek();
    if (choice == 78 && random_.one_in(3)) return restart();
    if (choice == 79 && random_.one_in(3)) return revoke();
    dispatch();
  }

  void check() {
    const Offset next = group_->next();
    const auto first = open_.begin();
    const std::uint64_t committed = first == open_.end() ? next.value : std::min(first->first, next.value);
    ASSERT_EQ(group_->committed().value, committed);
    const log::NamedCursor stored = stored_cursor();
    const DeliveryCounts counts(stored.unfinished.delivery_bits);
    std::uint64_t held = 0;
    for (const auto& [offset, message] : open_) {
      held += message.holder != nullptr ? 1 : 0;
      if (next <= Offset{offset}) continue;
      ASSERT_TRUE(stored.unfinished.messages.contains({offset})) << "message " << offset;
      ASSERT_EQ(counts.of({offset}), counted(message)) << "message " << offset;
    }
    const GroupMessages& messages = group_->messages();
    ASSERT_EQ(messages.unacknowledged(), held);
    ASSERT_EQ(
        messages.ready(log_.first_offset(), log_.next_offset()) + messages.in_flight() + messages.retrying(),
        open_.size())
        << "each message that is not done with is in one state";
  }

  void finish() {
    while (!holders_.empty()) leave_with(0);
    pass(std::chrono::hours(10));
    auto open = test::asked();
    open.acknowledgement = AckMode::automatic;
    FakeConsumer last;
    set_->attach(*group_, last, open).begin();
    dispatch_all();
    for (const auto& frame : last.frames) {
      for (std::uint64_t at = frame.range.begin.value; at < frame.range.end.value; ++at) {
        const auto found = open_.find(at);
        ASSERT_NE(found, open_.end()) << "message " << at << " is done, and was delivered again";
        ASSERT_EQ(frame.delivery, found->second.deliveries + 1) << "message " << at;
        open_.erase(found);
      }
    }
    EXPECT_TRUE(open_.empty()) << open_.size() << " messages were lost";
    EXPECT_EQ(group_->messages().ready(log_.first_offset(), log_.next_offset()), 0U);
  }

  int taken_from_silent = 0, timeouts = 0, late = 0, hand_outs = 0, restarts = 0;

 private:
  /// Returns the deliveries that count if the message is taken back now.
  static std::uint32_t counted(const LeasedMessage& message) {
    return message.deliveries + (message.holder != nullptr && message.started ? 1U : 0U);
  }
  static void take_back(LeasedMessage& message, bool counts) {
    message.deliveries += counts ? 1 : 0;
    message.holder = nullptr;
    message.started = false;
    message.until = never;
  }

  log::NamedCursor stored_cursor() {
    for (const log::NamedCursor& cursor : test::stored_cursors(*set_, {now_, wall_})) {
      if (cursor.name.starts_with("group:")) return cursor;
    }
    return {};
  }

  void publish() {
    BatchBuilder batch;
    const std::uint64_t count = random_.one_in(4) ? random_.between(1, 60) : random_.between(1, 3);
    for (std::uint64_t i = 0; i < count; ++i) {
      open_[published_] = {};
      batch.add(as_byte_view(std::to_string(published_++)));
    }
    ASSERT_EQ(log_.append(batch.finish(), {1}).outcome, log::AppendOutcome::appended);
  }

  void join() {
    if (holders_.size() >= 5) return;
    auto open = test::asked();
    open.leases = true;
    open.credit.messages = static_cast<std::uint32_t>(random_.below(40));
    open.ack_timeout_ms = static_cast<std::uint32_t>(random_.between(1, 300));
    auto holder = std::make_unique<LeaseHolder>();
    holder->timeout_ms = open.ack_timeout_ms;
    holder->member = &set_->attach(*group_, holder->consumer, open);
    holder->member->begin();
    holders_.push_back(std::move(holder));
  }

  void leave() {
    if (!holders_.empty()) leave_with(random_.below(holders_.size()));
  }
  void leave_with(std::size_t which) {
    LeaseHolder& holder = *holders_[which];
    set_->detach(*group_, *holder.member);
    for (auto& [offset, message] : open_) {
      if (message.holder == &holder) take_back(message, message.started);
    }
    holders_.erase(holders_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  LeaseHolder* some_holder() {
    return holders_.empty() ? nullptr : holders_[random_.below(holders_.size())].get();
  }
  /// Returns the number of the last hand-out, or an earlier one.
  std::uint32_t some_number(const LeaseHolder& holder) {
    if (!random_.one_in(4)) return holder.last_hand_out;
    return static_cast<std::uint32_t>(random_.between(1, holder.last_hand_out));
  }
  OffsetRange some_range() {
    const std::uint64_t from = open_.empty() ? 0 : open_.begin()->first;
    const std::uint64_t begin = from + random_.below(40);
    return {{begin}, {begin + random_.between(1, 30)}};
  }
  template <typename Visit>
  void each_held(const LeaseHolder& holder, OffsetRange range, std::uint32_t hand_out, Visit&& visit) {
    for (auto at = open_.lower_bound(range.begin.value); at != open_.end() && at->first < range.end.value;) {
      const auto here = at++;
      if (here->second.holder == &holder && here->second.hand_out == hand_out) visit(here);
    }
  }

  void start() {
    LeaseHolder* const holder = some_holder();
    if (holder == nullptr) return;
    const OffsetRange range = some_range();
    const std::uint32_t number = some_number(*holder);
    group_->start(*holder->member, {std::nullopt, {range}, number}, now_);
    each_held(*holder, range, number, [&](auto at) {
      if (!std::exchange(at->second.started, true))
        at->second.until = deadline_after(now_, holder->timeout_ms);
    });
    if (number != holder->last_hand_out) return;
    holder->window = range;
    holder->window_hand_out = number;
  }

  void acknowledge() {
    LeaseHolder* const holder = some_holder();
    if (holder == nullptr) return;
    const OffsetRange range = random_.one_in(2) ? some_range() : OffsetRange{{0}, some_range().end};
    const std::uint32_t number = some_number(*holder);
    const bool cumulative = range.begin == Offset{0};
    if (cumulative) {
      group_->acknowledge(*holder->member, {range.end, {}, number});
    } else {
      group_->acknowledge(*holder->member, {std::nullopt, {range}, number});
    }
    each_held(*holder, range, number, [&](auto at) { open_.erase(at); });
    check_late(*holder, range, number);
  }
  /// The member is told exactly the messages of its request that were taken back from it since the hand-out
  /// that the request names, each of them once.
  void check_late(LeaseHolder& holder, OffsetRange requested, std::uint32_t number) {
    std::set<std::uint64_t> expected;
    std::erase_if(holder.revoked, [&](const auto& each) {
      const bool is_late = has(requested, each.first) && each.second >= number;
      if (is_late) expected.insert(each.first);
      return is_late;
    });
    for (const OffsetRange& range : std::exchange(holder.consumer.was_late, {})) {
      ASSERT_LT(range.begin, range.end);
      for (std::uint64_t at = range.begin.value; at < range.end.value; ++at)
        ASSERT_EQ(expected.erase(at), 1U) << "message " << at << " was not revoked, or is told twice";
      ++late;
    }
    ASSERT_TRUE(expected.empty()) << "message " << *expected.begin() << " is late";
  }

  void reject() {
    LeaseHolder* const holder = some_holder();
    if (holder == nullptr) return;
    const bool releases = random_.one_in(2);
    const RejectKind kind = releases ? RejectKind::release : RejectKind::retry;
    const auto ms = !releases && random_.one_in(2) ? static_cast<std::uint32_t>(random_.below(2000)) : 0;
    const OffsetRange range = some_range();
    const std::uint32_t number = some_number(*holder);
    group_->reject(*holder->member, {ms, {range}, number, kind}, now_);
    each_held(*holder, range, number, [&](auto at) {
      take_back(at->second, !releases);
      at->second.not_before = now_ + milliseconds(ms);
    });
    if (!releases) return check_late(*holder, range, number);
    ASSERT_TRUE(holder->consumer.was_late.empty()) << "a release is never late";
  }

  void extend() {
    LeaseHolder* const holder = some_holder();
    if (holder == nullptr) return;
    const auto ms = static_cast<std::uint32_t>(random_.below(5000));
    const OffsetRange range = some_range();
    const std::uint32_t number = some_number(*holder);
    group_->extend(*holder->member, {ms, {range}, number}, now_);
    each_held(*holder, range, number, [&](auto at) {
      at->second.started = true;
      at->second.until = deadline_after(now_, ms);
    });
    check_late(*holder, range, number);
  }

  void give_credit() {
    LeaseHolder* const holder = some_holder();
    if (holder == nullptr) return;
    ASSERT_TRUE(holder->member->add_credit({random_.below(40), random_.below(200)}));
  }

  void turn_silent() {
    LeaseHolder* const holder = some_holder();
    if (holder == nullptr) return;
    holder->silent = !holder->silent;
    holder->consumer.is_writable = !holder->silent;
    holder->member->set_silent(holder->silent);
    if (!holder->silent) holder->member->wake();
  }

  void pass(milliseconds time) {
    now_ += time;
    wall_.us += std::chrono::microseconds(time).count();
  }

  void revoke() {
    if (holders_.empty()) return;
    const std::size_t which = random_.below(holders_.size());
    LeaseHolder& holder = *holders_[which];
    group_->returns().tell_end(*holder.member, RevokeCause::rights);
    std::size_t told = 0;
    for (const auto& revocation : std::exchange(holder.consumer.revocations, {})) {
      ASSERT_GT(revocation.before, holder.last_hand_out);
      for (const OffsetRange& range : revocation.ranges) {
        for (std::uint64_t at = range.begin.value; at < range.end.value; ++at, ++told) {
          const auto found = open_.find(at);
          ASSERT_NE(found, open_.end()) << "message " << at << " is done, and was revoked";
          ASSERT_EQ(found->second.holder, &holder) << "message " << at;
        }
      }
    }
    ASSERT_EQ(told, holder.member->outstanding().messages());
    leave_with(which);
  }

  void seek() {
    const std::uint64_t first = log_.first_offset().value;
    const std::uint64_t to = first + random_.below(published_ - first + 1);
    ASSERT_EQ(set_->seek(*group_, {StartPosition::From::offset, to}).value_or_throw(), Offset{to});
    for (const auto& holder : holders_) holder->revoked.clear();  // forgotten
    check_revocations();
    open_.clear();
    for (std::uint64_t at = to; at < published_; ++at) open_[at] = {};
  }

  void restart() {
    ++restarts;
    std::vector<log::NamedCursor> stored;
    if (set_ != nullptr) stored = test::stored_cursors(*set_, {now_, wall_});
    for (auto& [offset, message] : open_) {
      if (message.holder != nullptr) take_back(message, message.started);
    }
    holders_.clear();
    set_ = std::make_unique<ConsumerGroups>(log_, false, GroupLimits{});
    GroupCursors(*set_).restore(stored, log_.next_offset(), {now_, wall_});
    group_ = &set_->open_plain();
  }

  /// Applies the revocations that the members were told since the last call. Each revoked message must have
  /// been theirs.
  void check_revocations() {
    for (const auto& holder : holders_) {
      for (const auto& revocation : std::exchange(holder->consumer.revocations, {})) {
        ASSERT_GT(revocation.before, holder->last_hand_out);
        for (const OffsetRange& range : revocation.ranges) {
          for (std::uint64_t at = range.begin.value; at < range.end.value; ++at)
            apply(*holder, revocation.cause, at);
        }
      }
    }
  }
  void apply(LeaseHolder& holder, RevokeCause cause, std::uint64_t offset) {
    const auto found = open_.find(offset);
    ASSERT_NE(found, open_.end()) << "message " << offset << " is done, and was revoked";
    LeasedMessage& message = found->second;
    ASSERT_EQ(message.holder, &holder) << "message " << offset << " was revoked from another";
    if (cause == RevokeCause::processing_timeout) {
      ++timeouts;
      ASSERT_TRUE(message.started && message.until <= now_) << "message " << offset << " was not overdue";
    }
    if (cause == RevokeCause::silent) {
      ++taken_from_silent;
      ASSERT_TRUE(holder.silent && !message.started) << "message " << offset << " was the member's own";
    }
    holder.revoked[offset] = message.hand_out;
    take_back(message, cause == RevokeCause::processing_timeout);
  }

  void dispatch_all() {
    do {
      while (set_->dispatch({.now = now_, .cursor_bytes_max = 1000}, damage_).more) {
      }
    } while (log_of_topic_.arrive());
  }

  void dispatch() {
    dispatch_all();
    check_revocations();
    for (const auto& holder : holders_) look_at(*holder);
    check_liveness();
    if (const auto passed = set_->passed(); passed && random_.one_in(4)) log_.trim(*passed);
  }

  /// After a dispatch, no member that could take a message is left without one.
  void check_liveness() {
    const bool any_can_take =
        std::ranges::any_of(holders_, [](const auto& holder) { return holder->member->can_take(); });
    if (!any_can_take) return;
    ASSERT_EQ(group_->messages().ready(log_.first_offset(), log_.next_offset()), 0U);
    for (const auto& [offset, message] : open_) {
      const bool waits = std::ranges::any_of(holders_, [&, held = message.holder](const auto& holder) {
        return held == holder.get() && holder->silent;
      });
      ASSERT_FALSE(waits && !message.started) << "message " << offset << " waits in a silent client";
    }
  }

  void look_at(LeaseHolder& holder) {
    for (const auto& frame : std::exchange(holder.consumer.frames, {})) {
      ASSERT_FALSE(holder.silent);
      ASSERT_GE(frame.hand_out, holder.last_hand_out);
      holder.last_hand_out = frame.hand_out;
      for (std::uint64_t at = frame.range.begin.value; at < frame.range.end.value; ++at) {
        ++hand_outs;
        const auto found = open_.find(at);
        ASSERT_NE(found, open_.end()) << "message " << at << " is done, and was delivered again";
        LeasedMessage& message = found->second;
        ASSERT_EQ(message.holder, nullptr) << "message " << at << " is held by two";
        ASSERT_LE(message.not_before, now_) << "message " << at << " was to wait";
        ASSERT_EQ(frame.delivery, message.deliveries + 1) << "message " << at;
        message.holder = &holder;
        message.hand_out = frame.hand_out;
        message.started =
            frame.delivery == 1 && frame.hand_out == holder.window_hand_out && has(holder.window, at);
        message.until = message.started ? deadline_after(now_, holder.timeout_ms) : never;
      }
    }
  }

  Random& random_;
  test::LogOfTopic log_of_topic_{
      std::make_unique<log::RingLog>(log::RingLogOptions{.capacity_bytes = 16 * limits::MiB})};
  log::BatchLog& log_ = log_of_topic_.log_to_use();
  std::unique_ptr<ConsumerGroups> set_;
  ConsumerGroup* group_ = nullptr;
  DamageCount damage_;
  SteadyTime now_{std::chrono::hours(1)};
  Timestamp wall_{1'000'000'000'000};
  std::vector<std::unique_ptr<LeaseHolder>> holders_;
  std::uint64_t published_ = 0;
  std::map<std::uint64_t, LeasedMessage> open_;
};

TEST(GroupLeaseRandom, EachMessageIsOneMembersAndFinishedByItsPresentHandOutOnly) {
  int taken_from_silent = 0, timeouts = 0, late = 0, hand_outs = 0, restarts = 0;
  for (int run = 0; run < 30; ++run) {
    Random random(run);
    LeaseModel model(random);
    for (int step = 0; step < 1000; ++step) {
      model.step();
      ASSERT_FALSE(testing::Test::HasFailure()) << "run " << run << ", step " << step;
      ASSERT_NO_FATAL_FAILURE(model.check()) << "run " << run << ", step " << step;
    }
    ASSERT_NO_FATAL_FAILURE(model.finish()) << "run " << run;
    taken_from_silent += model.taken_from_silent;
    timeouts += model.timeouts;
    late += model.late;
    hand_outs += model.hand_outs;
    restarts += model.restarts;
  }
  EXPECT_GT(taken_from_silent, 1000);
  EXPECT_GT(timeouts, 500);
  EXPECT_GT(late, 300);
  EXPECT_GT(hand_outs, 30'000);
  EXPECT_GT(restarts, 40);
}

}  // namespace
}  // namespace lightq::broker
