/// Tests of a group with random consumers that join, leave, acknowledge, reject and fall silent. A model
/// lists the messages that are not settled.
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "delivery/consumer_group_harness.hpp"
#include "delivery/consumer_groups.hpp"
#include "support/random.hpp"

namespace lightq::broker {
namespace {

using std::chrono::milliseconds;
using test::FakeConsumer;
using test::FakeRecordSink;
using test::Random;

/// A message that is not settled.
struct Open {
  std::uint32_t deliveries = 0;
  const void* holder = nullptr;  // the member or sink that it was delivered to
  SteadyTime until = never;      // the deadline of a member's message
  Timestamp not_before{};        // the delay of a rejected message
};

struct Puller {
  FakeRecordSink sink{1'000'000, false};
  std::size_t seen = 0;       // messages that were delivered
  std::size_t sent = 0;       // the part of `seen` that was sent
  std::size_t forgotten = 0;  // the part of `seen` before the last seek
};

struct Worker {
  FakeConsumer consumer;
  GroupMember* member = nullptr;
  bool automatic = false;
  std::uint32_t timeout_ms = 0;
};

class GroupModel {
 public:
  explicit GroupModel(Random& random) : random_(random) { restart(); }

  void step() {
    const std::uint64_t choice = random_.below(100);
    if (choice < 20) return publish();
    if (choice < 25) return join();
    if (choice < 28) return leave();
    if (choice < 31) return join_plainly();
    if (choice < 33) return leave_plainly();
    if (choice < 40) return send();
    if (choice < 62) return acknowledge();
    if (choice < 68) return reject();
    if (choice < 72) return extend();
    if (choice < 80) return give_credit();
    if (choice < 83) return pass_time();
    if (choice == 83 && random_.one_in(3)) return seek();
    if (choice == 84 && random_.one_in(3)) return restart();
    if (choice == 85) return pause(!group_->is_paused());
    dispatch();
  }

  void check() {
    const Offset next = group_->next();
    const log::NamedCursor stored = stored_cursor();
    const DeliveryCounts counts(stored.unfinished.delivery_bits);
    const auto first_open = open_.begin();
    const std::uint64_t committed =
        first_open == open_.end() ? next.value : std::min(first_open->first, next.value);
    ASSERT_EQ(group_->committed().value, committed)
        << "everything before it is done, and it is the last such";
    for (std::uint64_t at = committed; at < next.value; ++at) {
      ASSERT_EQ(stored.unfinished.messages.contains({at}), open_.contains(at)) << "message " << at;
      if (!open_.contains(at)) continue;
      ASSERT_EQ(counts.of({at}), open_[at].deliveries) << "message " << at;
    }
    std::uint64_t held = 0;
    for (const auto& [offset, message] : open_) held += is_member(message.holder) ? 1 : 0;
    const GroupMessages& messages = group_->messages();
    ASSERT_EQ(messages.unacknowledged(), held);
    ASSERT_EQ(
        messages.ready(log_.first_offset(), log_.next_offset()) + messages.in_flight() + messages.retrying(),
        open_.size())
        << "each message that is not done with is in one state";
  }

  /// Lets every unsettled message be delivered once more and acknowledged.
  void finish() {
    while (!workers_.empty()) leave_with(0);
    while (!pullers_.empty()) leave_plainly_with(0);
    pause(false);
    pass(std::chrono::hours(10));
    auto open = test::asked();
    open.acknowledgement = AckMode::automatic;
    join_as(open);
    dispatch();
    EXPECT_TRUE(open_.empty()) << open_.size() << " messages were lost";
  }

  int redeliveries = 0, restarts = 0, timeouts = 0, seeks = 0, pauses = 0;

 private:
  [[nodiscard]] bool is_member(const void* holder) const {
    return std::any_of(workers_.begin(), workers_.end(),
                       [&](const auto& each) { return each.get() == holder; });
  }

  log::NamedCursor stored_cursor() {
    for (const log::NamedCursor& cursor : test::stored_cursors(*set_, {now_, wall_})) {
      if (cursor.name.starts_with("group:")) return cursor;
    }
    return {};
  }

  void publish() {
    BatchBuilder batch;
    const std::string_view key = "the key of this batch's messages";
    const Attributes attributes{.key = random_.one_in(2) ? key : std::string_view()};
    const auto codec = static_cast<Codec>(random_.below(3));
    const std::uint64_t count = random_.one_in(4) ? random_.between(1, 60) : random_.between(1, 3);
    for (std::uint64_t i = 0; i < count; ++i) {
      open_[published_] = {};
      // All messages have the same key, so that compression helps.
      batch.add(as_byte_view(std::to_string(published_++)), attributes);
    }
    test::pack(batch, codec);
    ASSERT_EQ(log_.append(batch.finish(), {1}).outcome, log::AppendOutcome::appended);
  }

  void join() {
    if (workers_.size() >= 6) return;
    auto open = test::asked();
    open.acknowledgement = random_.one_in(5) ? AckMode::automatic : AckMode::by_consumer;
    open.credit.messages = static_cast<std::uint32_t>(random_.below(40));
    open.credit.bytes = random_.one_in(3) ? random_.below(50) : 1'000'000;
    open.ack_timeout_ms = static_cast<std::uint32_t>(random_.between(1, 3000));
    join_as(open);
  }

  void join_as(const ConsumeRequest& open) {
    auto worker = std::make_unique<Worker>();
    worker->automatic = open.acknowledgement == AckMode::automatic;
    worker->timeout_ms = open.ack_timeout_ms;
    worker->member = &set_->attach(*group_, worker->consumer, open);
    worker->member->begin();
    workers_.push_back(std::move(worker));
  }

  void free_all_of(const void* holder) {
    for (auto& [offset, message] : open_) {
      if (message.holder == holder) message.holder = nullptr;
    }
  }

  void leave() {
    if (!workers_.empty()) leave_with(random_.below(workers_.size()));
  }
  void leave_with(std::size_t which) {
    Worker& worker = *workers_[which];
    set_->detach(*group_, *worker.member);
    free_all_of(&worker);
    workers_.erase(workers_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  void join_plainly() {
    if (pullers_.size() >= 2) return;
    pullers_.push_back(std::make_unique<Puller>());
    pullers_.back()->sink.give_room(random_.below(200));
    set_->attach(pullers_.back()->sink);
  }

  void leave_plainly() {
    if (!pullers_.empty()) leave_plainly_with(random_.below(pullers_.size()));
  }
  void leave_plainly_with(std::size_t which) {
    Puller& puller = *pullers_[which];
    set_->detach(puller.sink);
    for (auto& [offset, message] : open_) {
      if (message.holder == &puller) message.holder = nullptr;
    }
    pullers_.erase(pullers_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  void send() {
    if (pullers_.empty()) return;
    Puller& puller = *pullers_[random_.below(pullers_.size())];
    const std::size_t end = std::min<std::size_t>(puller.seen, puller.sent + random_.below(30));
    if (end <= puller.forgotten) return;
    puller.sink.send(end - puller.sent);
    for (; puller.sent < end; ++puller.sent) open_.erase(puller.sink.offsets[puller.sent].value);
  }

  Worker* some_worker() {
    return workers_.empty() ? nullptr : workers_[random_.below(workers_.size())].get();
  }

  /// Returns ascending ranges that do not touch, near the unsettled messages. Many of these messages belong
  /// to other members.
  std::vector<OffsetRange> some_ranges() {
    std::vector<OffsetRange> ranges;
    std::uint64_t at = open_.empty() ? 0 : open_.begin()->first;
    for (std::uint64_t left = random_.between(1, 4); left != 0; --left) {
      const std::uint64_t begin = at + random_.below(20);
      at = begin + random_.between(1, 30);
      ranges.push_back({{begin}, {at}});
      ++at;
    }
    return ranges;
  }

  template <typename Visit>
  void each_held(const Worker& worker, const std::vector<OffsetRange>& ranges, Visit&& visit) {
    std::vector<std::uint64_t> held;
    for (const auto& [offset, message] : open_) {
      const Offset here{offset};
      const bool inside = std::any_of(ranges.begin(), ranges.end(), [&](const OffsetRange& range) {
        return range.begin <= here && here < range.end;
      });
      if (message.holder == &worker && inside) held.push_back(offset);
    }
    for (const std::uint64_t offset : held) visit(offset);
  }

  void acknowledge() {
    Worker* const worker = some_worker();
    if (worker == nullptr) return;
    Ack acknowledge;
    auto ranges = some_ranges();
    if (random_.one_in(2)) {
      acknowledge.before = ranges.back().end;
      ranges = {{{0}, ranges.back().end}};
    } else {
      acknowledge.ranges = ranges;
    }
    group_->acknowledge(*worker->member, acknowledge);
    each_held(*worker, ranges, [&](std::uint64_t offset) { open_.erase(offset); });
  }

  void reject() {
    Worker* const worker = some_worker();
    if (worker == nullptr) return;
    const auto ms = random_.one_in(2) ? static_cast<std::uint32_t>(random_.below(2000)) : 0;
    const auto ranges = some_ranges();
    group_->reject(*worker->member, {ms, ranges}, now_);
    each_held(*worker, ranges, [&](std::uint64_t offset) {
      open_[offset].holder = nullptr;
      open_[offset].not_before = {wall_.us + std::int64_t{ms} * 1000};
    });
  }

  void extend() {
    Worker* const worker = some_worker();
    if (worker == nullptr) return;
    const auto ms = static_cast<std::uint32_t>(random_.below(5000));
    const auto ranges = some_ranges();
    group_->extend(*worker->member, {ms, ranges}, now_);
    each_held(*worker, ranges, [&](std::uint64_t offset) { open_[offset].until = deadline_after(now_, ms); });
  }

  void give_credit() {
    Worker* const worker = some_worker();
    if (worker == nullptr) return;
    worker->consumer.is_writable = !random_.one_in(8);
    worker->member->wake();
    ASSERT_TRUE(
        worker->member->add_credit({static_cast<std::uint32_t>(random_.below(40)), random_.below(200)}));
  }

  void pass_time() { pass(milliseconds(random_.one_in(5) ? random_.below(5000) : random_.below(50))); }
  void pass(milliseconds time) {
    now_ += time;
    wall_.us += std::chrono::microseconds(time).count();
  }

  void seek() {
    ++seeks;
    const std::uint64_t first = log_.first_offset().value;
    const std::uint64_t to = first + random_.below(published_ - first + 1);
    ASSERT_EQ(set_->seek(*group_, {StartPosition::From::offset, to}).value_or_throw(), Offset{to});
    open_.clear();
    for (std::uint64_t at = to; at < published_; ++at) open_[at] = {};
    for (const auto& puller : pullers_) puller->sent = puller->forgotten = puller->seen;
  }

  void pause(bool paused) {
    pauses += paused ? 1 : 0;
    paused_ = paused;
    group_->set_paused(paused);
  }

  /// Restores the group from its stored cursors only.
  void restart() {
    ++restarts;
    std::vector<log::NamedCursor> stored;
    if (set_ != nullptr) stored = test::stored_cursors(*set_, {now_, wall_});
    set_ = std::make_unique<ConsumerGroups>(log_, false, GroupLimits{});
    now_ = SteadyTime{std::chrono::hours(random_.between(1, 100))};  // another machine's clock
    GroupCursors(*set_).restore(stored, log_.next_offset(), {now_, wall_});
    group_ = &set_->open_plain();
    ASSERT_EQ(group_->is_paused(), paused_);
    workers_.clear();
    pullers_.clear();
    for (auto& [offset, message] : open_) {
      message.holder = nullptr;
      message.until = never;
    }
  }

  void dispatch() {
    for (auto& [offset, message] : open_) {
      if (!is_member(message.holder) || message.until > now_) continue;
      message.holder = nullptr;
      ++timeouts;
    }
    do {
      while (set_->dispatch({.now = now_, .cursor_bytes_max = 1000}, damage_).more) {
      }
    } while (log_of_topic_.arrive());
    for (const auto& worker : workers_) look_at(*worker);
    for (const auto& puller : pullers_) look_at(*puller);
    if (const auto passed = set_->passed(); passed && random_.one_in(4)) log_.trim(*passed);
  }

  Open& delivered(std::uint64_t offset, const void* to) {
    const auto found = open_.find(offset);
    EXPECT_NE(found, open_.end()) << "message " << offset << " is done, and was delivered again";
    if (found == open_.end()) return nobody_;
    Open& message = found->second;
    EXPECT_EQ(message.holder, nullptr) << "message " << offset << " is held by two";
    EXPECT_LE(message.not_before, wall_) << "message " << offset << " was to wait";
    EXPECT_FALSE(paused_) << "message " << offset << " was delivered by a paused group";
    message.holder = to;
    return message;
  }

  void look_at(Worker& worker) {
    for (const auto& frame : std::exchange(worker.consumer.frames, {})) {
      std::uint64_t offset = frame.range.begin.value;
      EXPECT_EQ(frame.lost, 0U);
      for (const auto& payload : frame.payloads) {
        ASSERT_EQ(payload, std::to_string(offset));
        Open& message = delivered(offset, &worker);
        redeliveries += message.deliveries > 0 ? 1 : 0;
        ASSERT_EQ(frame.delivery, ++message.deliveries) << "message " << offset;
        message.until = deadline_after(now_, worker.timeout_ms);
        if (worker.automatic) open_.erase(offset);
        ++offset;
      }
    }
  }

  void look_at(Puller& puller) {
    for (; puller.seen < puller.sink.offsets.size(); ++puller.seen) {
      const std::uint64_t offset = puller.sink.offsets[puller.seen].value;
      ASSERT_EQ(puller.sink.taken[puller.seen], std::to_string(offset));
      delivered(offset, &puller);
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
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<Puller>> pullers_;
  std::uint64_t published_ = 0;
  bool paused_ = false;
  std::map<std::uint64_t, Open> open_;
  Open nobody_;
};

TEST(GroupRandom, EveryMessageIsDoneExactlyWhenItIsAcknowledged) {
  int redeliveries = 0, restarts = 0, timeouts = 0, seeks = 0, pauses = 0;
  for (int run = 0; run < 30; ++run) {
    Random random(run);
    GroupModel model(random);
    for (int step = 0; step < 1000; ++step) {
      model.step();
      ASSERT_NO_FATAL_FAILURE(model.check()) << "step " << step;
      ASSERT_FALSE(testing::Test::HasFailure()) << "step " << step;
    }
    model.finish();
    redeliveries += model.redeliveries;
    restarts += model.restarts;
    timeouts += model.timeouts;
    seeks += model.seeks;
    pauses += model.pauses;
  }
  EXPECT_GT(redeliveries, 1000);
  EXPECT_GT(restarts, 40);
  EXPECT_GT(timeouts, 1000);
  EXPECT_GT(seeks, 40);
  EXPECT_GT(pauses, 40);
}

}  // namespace
}  // namespace lightq::broker
