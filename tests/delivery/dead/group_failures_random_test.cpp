/// Tests of a group under random failures and settings that change. After each step every message is in
/// exactly one state.
#include <gtest/gtest.h>

#include "delivery/dead/failure_model.hpp"
#include "log/saved_state/unfinished_code.hpp"

namespace lightq::broker {
namespace {

class FailureSteps : public FailureModel {
 public:
  explicit FailureSteps(Random& random) : FailureModel(random) { restart(); }

  void step() {
    const std::uint64_t choice = random_.below(100);
    if (choice < 14) return publish();
    if (choice < 19) return join();
    if (choice < 23) return leave();
    if (choice < 29) return start();
    if (choice < 33) return extend();
    if (choice < 42) return acknowledge();
    if (choice < 54) return reject();
    if (choice < 61) return give_credit();
    if (choice < 64) return turn_silent();
    if (choice < 70) return pass(milliseconds(random_.one_in(4) ? random_.below(4000) : random_.below(50)));
    if (choice < 72) return change_settings();
    if (choice < 75) {
      for (int i = 0; i < 4; ++i) ASSERT_NO_FATAL_FAILURE(transfer());
      return;
    }
    if (choice == 75) return command();
    if (choice == 76 && random_.one_in(4)) return seek();
    if (choice == 77 && random_.one_in(3)) return restart();
    if (choice == 78) return resume();
    dispatch();
  }

  void finish() {
    resume();
    while (!holders_.empty()) leave_with(0);
    settings_ = {};
    group_->set_settings(settings_);
    group_->dead().renew();
    renew();
    dispatch_all();
    for (std::optional<Offset> from = Offset{0}; from;) from = group_->dead().purge({}, *from).next;
    std::erase_if(open_, [](const auto& each) { return each.second.dead.has_value(); });
    pass(std::chrono::hours(10));
    auto open = test::asked();
    open.acknowledgement = AckMode::automatic;
    FakeConsumer last;
    set_->attach(*group_, last, open).begin();
    dispatch_all();
    for (const auto& frame : last.frames) {
      for (std::uint64_t at = frame.range.begin.value; at < frame.range.end.value; ++at) {
        ASSERT_EQ(frame.delivery, open_[at].attempts + 1) << "message " << at;
        open_.erase(at);
      }
    }
    EXPECT_TRUE(open_.empty()) << open_.size() << " messages were lost";
  }

 private:
  // Steps.

  void publish() {
    BatchBuilder batch;
    const std::uint64_t count = random_.one_in(4) ? random_.between(1, 40) : random_.between(1, 3);
    for (std::uint64_t i = 0; i < count; ++i) {
      open_[published_] = {};
      batch.add(as_byte_view(std::to_string(published_++)));
    }
    ASSERT_EQ(log_.append(batch.finish(), {1}).outcome, log::AppendOutcome::appended);
  }

  void join() {
    if (holders_.size() >= 5) return;
    auto open = test::asked();
    auto holder = std::make_unique<FailingHolder>();
    holder->leases = open.leases = random_.one_in(2);
    open.credit.messages = static_cast<std::uint32_t>(random_.below(40));
    open.ack_timeout_ms = holder->timeout_ms = static_cast<std::uint32_t>(random_.between(1, 600));
    holder->member = &set_->attach(*group_, holder->consumer, open);
    holder->member->begin();
    holders_.push_back(std::move(holder));
  }

  void leave() {
    if (!holders_.empty()) leave_with(random_.below(holders_.size()));
  }
  void leave_with(std::size_t which) {
    FailingHolder& holder = *holders_[which];
    const bool closes = random_.one_in(3);
    if (closes) holder.member->ends_by(MemberEnd::closed);
    const bool releases = closes && !holder.leases;
    draining_since_.erase(&holder);
    in_vain_.erase(&holder);
    set_->detach(*group_, *holder.member, now_);
    const auto is_started = [&](const auto& each) {
      return each.second.holder == &holder && each.second.started && !releases;
    };
    const bool several = std::ranges::count_if(open_, is_started) > 1;
    // The group puts back the messages that were not started first.
    for (const bool lost : {false, true}) {
      for (auto& [offset, message] : open_) {
        if (message.holder != &holder || (message.started && !releases) != lost) continue;
        ++(lost ? counters_.lost_with_session : counters_.released);
        come_back(offset, message, lost);
        message.is_single = lost && several && max() != 0 && !message.dead;
      }
    }
    holders_.erase(holders_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  FailingHolder* some_holder() {
    return holders_.empty() ? nullptr : holders_[random_.below(holders_.size())].get();
  }
  OffsetRange some_range() {
    std::vector<std::uint64_t> held;
    for (const auto& [offset, message] : open_) {
      if (message.holder != nullptr) held.push_back(offset);
    }
    const std::uint64_t from = held.empty() ? 0 : held[random_.below(held.size())];
    return {{from}, {from + random_.between(1, random_.one_in(3) ? 30 : 3)}};
  }
  static std::uint32_t number_of(const FailingHolder& holder) {
    return holder.leases ? holder.last_hand_out : 0;
  }
  template <typename Visit>
  void each_held(const FailingHolder& holder, OffsetRange range, std::uint32_t hand_out, Visit&& visit) {
    for (auto at = open_.lower_bound(range.begin.value); at != open_.end() && at->first < range.end.value;) {
      const auto here = at++;
      if (here->second.holder == &holder && here->second.hand_out == hand_out) visit(here);
    }
  }

  void start() {
    FailingHolder* const holder = some_holder();
    if (holder == nullptr || !holder->leases) return;
    const OffsetRange range = some_range();
    group_->start(*holder->member, {std::nullopt, {range}, holder->last_hand_out}, now_);
    each_held(*holder, range, holder->last_hand_out, [&](auto at) {
      if (!std::exchange(at->second.started, true))
        at->second.until = deadline_after(now_, holder->timeout_ms);
    });
    holder->window = range;
    holder->window_hand_out = holder->last_hand_out;
  }

  void extend() {
    FailingHolder* const holder = some_holder();
    if (holder == nullptr) return;
    const bool all = random_.one_in(2);
    const OffsetRange range = all ? OffsetRange{{0}, {published_}} : some_range();
    const auto ms = static_cast<std::uint32_t>(all ? random_.between(5000, 20'000) : random_.between(1, 500));
    group_->extend(*holder->member, {ms, {range}, number_of(*holder)}, now_);
    each_held(*holder, range, number_of(*holder), [&](auto at) {
      at->second.started = true;
      at->second.until = deadline_after(now_, ms);
    });
  }

  void acknowledge() {
    FailingHolder* const holder = some_holder();
    if (holder == nullptr) return;
    const OffsetRange range = some_range();
    group_->acknowledge(*holder->member, {std::nullopt, {range}, number_of(*holder)});
    each_held(*holder, range, number_of(*holder), [&](auto at) {
      open_.erase(at);
      ++acknowledged_;
    });
  }

  void reject() {
    FailingHolder* const holder = some_holder();
    if (holder == nullptr) return;
    const OffsetRange range = some_range();
    const std::uint64_t choice = random_.below(10);
    Rejection rejection{0, {range}, number_of(*holder)};
    rejection.kind = choice == 0 ? RejectKind::dead : choice < 4 ? RejectKind::release : RejectKind::retry;
    if (rejection.kind == RejectKind::dead) rejection.reason = "r" + std::to_string(range.begin.value);
    if (rejection.kind == RejectKind::retry && random_.one_in(3))
      rejection.delay_ms = static_cast<std::uint32_t>(random_.below(2000));
    group_->reject(*holder->member, rejection, now_, wall_);
    each_held(*holder, range, number_of(*holder), [&](auto at) {
      auto& [offset, message] = *at;
      switch (rejection.kind) {
        case RejectKind::release: ++counters_.released; return come_back(offset, message, false);
        case RejectKind::retry:
          ++counters_.failed;
          return come_back(offset, message, true, rejection.delay_ms);
        case RejectKind::dead: break;
      }
      ++counters_.failed;
      message.holder = nullptr;
      message.started = message.is_alone = false;
      ++message.attempts;
      die(offset, message, DeathCause::rejected, rejection.reason);
    });
  }

  void give_credit() {
    FailingHolder* const holder = some_holder();
    if (holder == nullptr) return;
    ASSERT_TRUE(holder->member->add_credit({random_.below(40), random_.below(200)}));
  }

  void turn_silent() {
    FailingHolder* const holder = some_holder();
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

  void change_settings() {
    const protocol::GroupSettings before = settings_;
    settings_ = {};
    if (random_.one_in(8)) {
      settings_ = {};
    } else {
      settings_.max_attempts = static_cast<std::uint32_t>(random_.below(7));
      for (std::uint64_t i = random_.below(4); i != 0; --i)
        settings_.backoff_ms.push_back(static_cast<std::uint32_t>(random_.below(1500)));
      if (random_.one_in(2)) settings_.dead_letter_topic = "letters";
      settings_.dead_waiting_max = static_cast<std::uint32_t>(random_.between(5, 40));
      settings_.pause_when_failing = random_.one_in(3);
    }
    target_ = {settings_.dead_letter_topic.empty() ? 0 : random_.between(8, 9)};
    set_->set_settings("default", {settings_, target_});
    for (auto& [offset, message] : open_) message.is_alone = false;
    park_without_target();
    if (max() != 0 && max() != before.max_attempts) {
      for (auto& [offset, message] : open_) {
        if (message.holder == nullptr && !message.dead && message.attempts >= max())
          die(offset, message, DeathCause::attempts);
      }
    }
    dispatch();
  }

  void transfer() {
    GroupDead dead = group_->dead();
    const std::size_t begun = dead.begin(random_.between(1, 5), target_);
    if (begun == 0) return;
    if (under_way_ == 0) {
      if (std::exchange(bound_, target_) != target_) first_number_ = 1;
      if (first_number_ == 1) incarnation_ = dead.incarnation();
    } else if (bound_ != target_) {
      ASSERT_EQ(begun, under_way_) << "messages are under way to another topic";
    }
    under_way_ = std::max(under_way_, begun);
    ASSERT_EQ(dead.target(), bound_);
    check_outbox();
    if (bound_ != target_ && random_.one_in(3)) {  // the former topic has answered
      ++settled;
      dead.renew();
      return renew();
    }
    if (random_.one_in(3)) return;
    const std::uint64_t first = dead.under_way().front().number;
    ASSERT_FALSE(dead.done(incarnation_, first + 1));
    ASSERT_FALSE(dead.done(incarnation_ + 1, first));
    const std::uint64_t offset = outbox_.front();
    outbox_.erase(outbox_.begin());
    if (random_.one_in(4)) {
      ASSERT_TRUE(dead.give_up(incarnation_, first));
      open_[offset].dead = DeadState::parked;
      return renew();
    }
    ++transfers;
    ASSERT_TRUE(dead.done(incarnation_, first));
    --under_way_;
    ++first_number_;
    open_.erase(offset);
  }

  void command() {
    DeadFilter filter;
    if (random_.one_in(3)) filter.state = random_.one_in(2) ? DeadState::parked : DeadState::dead_waiting;
    if (random_.one_in(3)) filter.cause = random_.one_in(2) ? DeathCause::attempts : DeathCause::rejected;
    if (random_.one_in(2)) {
      std::uint64_t at = random_.below(published_ + 1);
      for (int i = 0; i < 3; ++i) {
        const std::uint64_t end = at + random_.between(1, 40);
        filter.ranges.push_back({{at}, {end}});
        at = end + random_.between(1, 40);
      }
    }
    check_list(filter);
    std::uint64_t meant = 0;
    for (const auto& [offset, message] : open_)
      meant += is_meant(offset, message, filter) && !is_under_way(offset) ? 1 : 0;
    const auto all = [&](auto&& piece_from) {
      std::uint64_t messages = 0;
      for (std::optional<Offset> from = Offset{0}; from;) {
        const DeadPiece piece = piece_from(*from);
        messages += piece.messages;
        from = piece.next;
      }
      return messages;
    };
    GroupDead dead = group_->dead();
    ASSERT_EQ(all([&](Offset from) { return dead.count(filter, from); }), meant);
    const bool purges = random_.one_in(3);
    ASSERT_EQ(all([&](Offset from) { return purges ? dead.purge(filter, from) : dead.retry(filter, from); }),
              meant);
    for (auto at = open_.begin(); at != open_.end();) {
      const auto here = at++;
      if (!is_meant(here->first, here->second, filter) || is_under_way(here->first)) continue;
      if (here->second.dead == DeadState::dead_waiting) std::erase(outbox_, here->first);
      if (purges) {
        open_.erase(here);
      } else {
        ++retries;
        here->second = {};
      }
    }
  }

  void resume() { group_->set_paused(false); }

  void seek() {
    const std::uint64_t first = log_.first_offset().value;
    const std::uint64_t to = first + random_.below(published_ - first + 1);
    ASSERT_EQ(set_->seek(*group_, {StartPosition::From::offset, to}).value_or_throw(), Offset{to});
    for (const auto& holder : holders_) holder->consumer.revocations.clear();
    outbox_.clear();
    if (under_way_ != 0) renew();
    open_.clear();
    for (std::uint64_t at = to; at < published_; ++at) open_[at] = {};
  }

  static void encode_and_decode(log::NamedCursor& cursor) {
    std::vector<std::byte> bytes;
    log::append_unfinished(cursor.unfinished, cursor.offset, log::DeadParts::without_expired, bytes);
    ASSERT_LE(bytes.size(), log::unfinished_code_bytes_max(cursor.unfinished));
    ByteView left = bytes;
    std::size_t memory_left = 64 * limits::MiB;
    const auto decoded =
        log::take_unfinished(left, cursor.offset, log::DeadParts::without_expired, memory_left);
    ASSERT_TRUE(decoded && left.empty());
    ASSERT_EQ(*decoded, cursor.unfinished);
    cursor.unfinished = *decoded;
  }
  /// Saves the group and restores it.
  void restart() {
    ++restarts;
    std::vector<log::NamedCursor> stored;
    bool paused = false;
    if (set_ != nullptr) {
      stored = test::stored_cursors(*set_, {now_, wall_});
      paused = group_->is_paused();
    }
    for (log::NamedCursor& cursor : stored) ASSERT_NO_FATAL_FAILURE(encode_and_decode(cursor));
    for (auto& [offset, message] : open_) {
      message.attempts = stored_attempts(message);
      if (message.holder != nullptr) message.not_before = {};
      message.holder = nullptr;
      message.started = message.is_alone = message.is_single = false;
      message.until = never;
    }
    holders_.clear();
    draining_since_.clear();
    in_vain_.clear();
    counters_ = {};
    acknowledged_ = 0;
    set_ = std::make_unique<ConsumerGroups>(log_, false, GroupLimits{});
    set_->set_settings("default", {settings_, target_});
    GroupCursors(*set_).restore(stored, log_.next_offset(), {now_, wall_});
    group_ = &set_->open_plain();
    ASSERT_EQ(group_->is_paused(), paused);
    if (under_way_ != 0) {
      ASSERT_EQ(group_->dead().incarnation(), incarnation_);
    }
  }
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(LIGHTQ_LATE_LOG)
constexpr int tenths = 2;  // of a million steps
#else
constexpr int tenths = 10;
#endif

class GroupFailuresRandomTest : public testing::TestWithParam<int> {};

TEST_P(GroupFailuresRandomTest, EachMessageIsInOneStateAndDiesOfItsOwnFailuresOnly) {
  int deaths = 0, alone = 0, singles = 0, retries = 0, transfers = 0, restarts = 0, drained = 0, in_vain = 0;
  int settled = 0;
  for (int run = 100 * GetParam(); run < 100 * (GetParam() + 1); ++run) {
    Random random(run);
    FailureSteps model(random);
    for (int step = 0; step < 1000; ++step) {
      ASSERT_NO_FATAL_FAILURE(model.step()) << "run " << run << ", step " << step;
      ASSERT_NO_FATAL_FAILURE(model.check()) << "run " << run << ", step " << step;
    }
    ASSERT_NO_FATAL_FAILURE(model.finish()) << "run " << run;
    deaths += model.deaths;
    alone += model.alone;
    singles += model.singles;
    retries += model.retries;
    transfers += model.transfers;
    settled += model.settled;
    restarts += model.restarts;
    drained += model.drained;
    in_vain += model.in_vain;
  }
  EXPECT_GT(deaths, 6'700) << deaths;
  EXPECT_GT(alone, 3'400) << alone;
  EXPECT_GT(singles, 670) << singles;
  EXPECT_GT(retries, 340) << retries;
  EXPECT_GT(transfers, 340) << transfers;
  EXPECT_GT(settled, 27) << settled;
  EXPECT_GT(restarts, 170) << restarts;
  EXPECT_GT(drained, 140) << drained;
  EXPECT_GT(in_vain, 14) << in_vain;
}

INSTANTIATE_TEST_SUITE_P(Tenths, GroupFailuresRandomTest, testing::Range(0, tenths));

}  // namespace
}  // namespace lightq::broker
