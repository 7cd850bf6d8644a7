/// Tests of saves of groups with random consumers. Each save is taken in small pieces while consumers go on,
/// and goes through a cursor file. A model lists the messages that are not finished. Now and then the topic
/// starts again from its last save, as after a crash.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "delivery/consumer_group_harness.hpp"
#include "support/faulty_storage.hpp"
#include "support/random.hpp"

namespace lightq::broker {
namespace {

using std::chrono::milliseconds;
using test::FakeConsumer;
using test::FakeRecordSink;
using test::Random;

/// A message that is not finished.
struct Open {
  std::uint32_t deliveries = 0;
  const void* holder = nullptr;
  SteadyTime until = never;  // the deadline of a member's message
  std::int64_t due_us = 0;   // by the wall clock: not delivered before
  std::int64_t late_us = 0;  // how much later it may be
};

struct Worker {
  FakeConsumer consumer;
  GroupMember* member = nullptr;
  std::uint32_t timeout_ms = 0;
};
struct Puller {
  FakeRecordSink sink{1'000'000, false};
  std::size_t seen = 0, sent = 0, forgotten = 0;
};

class SavesModel {
 public:
  explicit SavesModel(Random& random) : random_(random) { start(); }

  void step() {
    const std::uint64_t choice = random_.below(100);
    if (choice < 18) return publish();
    if (choice < 22) return join();
    if (choice < 25) return leave();
    if (choice < 26) return join_plainly();
    if (choice < 27) return leave_plainly();
    if (choice < 31) return send();
    if (choice < 46) return acknowledge();
    if (choice < 54) return reject();
    if (choice < 58) return give_credit();
    if (choice < 62) return pass(milliseconds(random_.one_in(5) ? random_.below(3000) : random_.below(50)));
    if (choice == 62 && random_.one_in(4)) return seek();
    if (choice == 63 && random_.one_in(3)) return restart();
    if (choice < 82) return save();
    dispatch();
  }

  void check() {
    topic_->groups().give_up_dropped();
    std::erase_if(open_, [&](const auto& each) {
      return each.second.holder == nullptr && Offset{each.first} < log_->first_offset();
    });
    const GroupMessages& messages = group_->messages();
    ASSERT_EQ(messages.ready(log_->first_offset(), log_->next_offset()) + messages.in_flight() +
                  messages.retrying(),
              open_.size())
        << "each message that is not finished is in one state";
    const Offset lowest = open_.empty() ? group_->next() : Offset{open_.begin()->first};
    ASSERT_EQ(group_->committed(), std::min(lowest, group_->next()));
  }

  /// Lets every unfinished message be delivered.
  void finish() {
    while (!workers_.empty()) leave();
    while (!pullers_.empty()) leave_plainly();
    pass(std::chrono::hours(10));
    auto asked = test::asked("g");
    asked.acknowledgement = AckMode::automatic;
    auto worker = std::make_unique<Worker>();
    worker->member = &topic_->groups().attach(*group_, worker->consumer, asked);
    worker->member->begin();
    workers_.push_back(std::move(worker));
    dispatch();
    check();
    for (const auto& [offset, message] : open_) ADD_FAILURE() << "message " << offset << " was lost";
  }

  int saves = 0, pieces = 0, restarts = 0, drops = 0, seeks = 0;

 private:
  void start() {
    topic_ = std::make_unique<Topic>(
        TopicDefinition{{1}, *TopicName::parse("t"), {.overflow = protocol::Overflow::drop_oldest}}, *log_,
        wall_);
    cursors_ = std::make_unique<GroupCursors>(topic_->groups());
    cursors_->restore(saved_, log_->next_offset(), {now_, wall_});
    topic_->open_group();
    group_ = topic_->groups().plain();
    is_saving_ = false;
  }

  // --- Producers and consumers ---

  void publish() {
    BatchBuilder batch;
    for (std::uint64_t left = random_.between(1, random_.one_in(4) ? 60 : 3); left != 0; --left) {
      opened(published_);
      batch.add(as_byte_view(std::to_string(published_++)));
    }
    const Offset first = log_->first_offset();
    ASSERT_EQ(topic_->publish(batch, wall_), PublishOutcome::accepted);
    drops += first < log_->first_offset() && group_->committed() < log_->first_offset() ? 1 : 0;
  }
  void opened(std::uint64_t offset) {
    open_[offset] = {};
    open_since_begin_.insert(offset);
  }

  void join() {
    if (workers_.size() >= 5) return;
    auto asked = test::asked();
    asked.credit.messages = static_cast<std::uint32_t>(random_.below(40));
    asked.ack_timeout_ms = static_cast<std::uint32_t>(random_.between(1, 3000));
    auto worker = std::make_unique<Worker>();
    worker->timeout_ms = asked.ack_timeout_ms;
    worker->member = &topic_->groups().attach(*group_, worker->consumer, asked);
    worker->member->begin();
    workers_.push_back(std::move(worker));
  }
  void leave() {
    if (workers_.empty()) return;
    const auto leaving = workers_.begin() + static_cast<std::ptrdiff_t>(random_.below(workers_.size()));
    topic_->groups().detach(*group_, *(*leaving)->member);
    for (auto& [offset, message] : open_) {
      if (message.holder == leaving->get()) message.holder = nullptr;
    }
    workers_.erase(leaving);
  }
  void join_plainly() {
    if (pullers_.size() >= 3) return;
    pullers_.push_back(std::make_unique<Puller>());
    pullers_.back()->sink.give_room(random_.below(200));
    topic_->attach_puller(pullers_.back()->sink);
  }
  void leave_plainly() {
    if (pullers_.empty()) return;
    const auto leaving = pullers_.begin() + static_cast<std::ptrdiff_t>(random_.below(pullers_.size()));
    topic_->detach_puller((*leaving)->sink);
    for (auto& [offset, message] : open_) {
      if (message.holder == leaving->get()) message.holder = nullptr;
    }
    pullers_.erase(leaving);
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
  /// Picks some of the worker's messages, and calls `visit(offset, range)` for each.
  template <typename Visit>
  void some_held(const Worker& worker, Visit&& visit) {
    std::vector<std::uint64_t> held;
    for (const auto& [offset, message] : open_) {
      if (message.holder == &worker && random_.one_in(2)) held.push_back(offset);
    }
    for (const std::uint64_t offset : held) visit(offset, OffsetRange{{offset}, {offset + 1}});
  }
  void acknowledge() {
    Worker* const worker = some_worker();
    if (worker == nullptr) return;
    some_held(*worker, [&](std::uint64_t offset, OffsetRange range) {
      group_->acknowledge(*worker->member, {std::nullopt, {range}});
      open_.erase(offset);
    });
  }
  void reject() {
    Worker* const worker = some_worker();
    if (worker == nullptr) return;
    some_held(*worker, [&](std::uint64_t offset, OffsetRange range) {
      const auto ms = random_.one_in(2) ? static_cast<std::uint32_t>(random_.below(5000)) : 0;
      group_->reject(*worker->member, {ms, {range}}, now_);
      Open& message = open_[offset];
      message.holder = nullptr;
      message.due_us = wall_.us + std::int64_t{ms} * 1000;
      message.late_us = std::int64_t{std::max<std::uint32_t>(8, ms / 128)} * 1000;
    });
  }
  void give_credit() {
    Worker* const worker = some_worker();
    if (worker == nullptr) return;
    worker->member->wake();
    ASSERT_TRUE(worker->member->add_credit({static_cast<std::uint32_t>(random_.below(40)), 1'000}));
  }
  void pass(milliseconds time) {
    now_ += time;
    wall_.us += std::chrono::microseconds(time).count();
  }
  void seek() {
    ++seeks;
    const std::uint64_t first = log_->first_offset().value;
    const std::uint64_t to = first + random_.below(published_ - first + 1);
    ASSERT_TRUE(topic_->groups().seek(*group_, {StartPosition::From::offset, to}).ok());
    open_.clear();
    for (std::uint64_t at = to; at < published_; ++at) opened(at);
    for (const auto& puller : pullers_) puller->sent = puller->forgotten = puller->seen;
  }

  void dispatch() {
    while (topic_->dispatch({.now = now_, .wall = wall_, .cursor_bytes_max = 1000}).more) {
    }
    for (const auto& worker : workers_) {
      for (const auto& frame : std::exchange(worker->consumer.frames, {})) {
        for (std::uint64_t at = frame.range.begin.value; at < frame.range.end.value; ++at) {
          Open* const message = delivered(at, worker.get());
          if (message == nullptr) return;
          ASSERT_EQ(frame.delivery, ++message->deliveries) << "message " << at;
          message->until = deadline_after(now_, worker->timeout_ms);
          if (worker->timeout_ms == 0) open_.erase(at);
        }
      }
    }
    for (const auto& puller : pullers_) {
      for (; puller->seen < puller->sink.offsets.size(); ++puller->seen)
        delivered(puller->sink.offsets[puller->seen].value, puller.get());
    }
    // A member with many ranges takes messages back a little later than their deadline.
    for (const auto& worker : workers_) {
      for (auto& [offset, message] : open_) {
        if (message.holder != worker.get() || now_ < message.until) continue;
        const auto entry = worker->member->outstanding().first_behind({offset});
        if (!entry || Offset{offset} < entry->range.begin) message.holder = nullptr;
      }
    }
  }
  [[nodiscard]] bool is_worker(const void* holder) const {
    return std::ranges::any_of(workers_, [&](const auto& each) { return each.get() == holder; });
  }
  Open* delivered(std::uint64_t offset, const void* to) {
    const auto found = open_.find(offset);
    EXPECT_NE(found, open_.end()) << "message " << offset << " is finished, and was delivered again";
    if (found == open_.end()) return nullptr;
    const bool expired = is_worker(found->second.holder) && found->second.until <= now_;
    EXPECT_TRUE(found->second.holder == nullptr || expired) << "message " << offset << " is held by two";
    EXPECT_LE(found->second.due_us, wall_.us) << "message " << offset << " is early";
    found->second.holder = to;
    return &found->second;
  }

  // --- Saves ---

  void save() {
    if (!is_saving_) {
      if (!random_.one_in(3)) return;
      cursors_->begin();
      is_saving_ = true;
      open_since_begin_.clear();
      for (const auto& [offset, message] : open_) open_since_begin_.insert(offset);
    }
    ++pieces;
    if (!cursors_->collect(random_.between(1, 40), {now_, wall_})) return;
    is_saving_ = false;
    ++saves;
    log::CursorFile file(storage_, "/topics/1");
    ASSERT_TRUE(file.write(log::CursorFile::encode(cursors_->take().finished())).ok());
    saved_ = log::CursorFile(storage_, "/topics/1").load().value_or_throw();
    ASSERT_EQ(saved_.size(), 1U);
    check_saved();
  }

  static std::map<std::uint64_t, std::int64_t> due_times_of(const log::Unfinished& unfinished) {
    std::map<std::uint64_t, std::int64_t> times;
    for (const auto& [due, messages] : unfinished.delayed) {
      messages.for_each([&, at = due.us](OffsetRange run) {
        for (std::uint64_t offset = run.begin.value; offset < run.end.value; ++offset) times[offset] = at;
      });
    }
    return times;
  }

  void check_saved() {
    const log::NamedCursor& cursor = saved_.front();
    ASSERT_EQ(cursor.unfinished.next, group_->next());
    const DeliveryCounts counts(cursor.unfinished.delivery_bits);
    const auto due_times = due_times_of(cursor.unfinished);
    for (std::uint64_t at = 0; at < cursor.unfinished.next.value; ++at) {
      const bool is_saved = cursor.unfinished.messages.contains({at});
      const auto found = open_.find(at);
      if (found == open_.end()) {
        ASSERT_TRUE(!is_saved || open_since_begin_.contains(at))
            << "message " << at << " was finished before";
        continue;
      }
      const Open& message = found->second;
      ASSERT_TRUE(is_saved) << "message " << at << " is forgotten";
      ASSERT_EQ(counts.of({at}), message.deliveries) << "message " << at;
      const bool waits = message.holder == nullptr && message.due_us > wall_.us;
      ASSERT_TRUE(!waits || due_times.contains(at)) << "message " << at << " waits";
      if (!waits) continue;
      ASSERT_GE(due_times.at(at), message.due_us) << "message " << at;
      ASSERT_LE(due_times.at(at), message.due_us + message.late_us) << "message " << at;
    }
  }

  /// Starts again with the last save, as after a crash.
  void restart() {
    if (saved_.empty()) return;
    ++restarts;
    workers_.clear();
    pullers_.clear();
    cursors_.reset();
    topic_.reset();
    now_ = SteadyTime{std::chrono::hours(random_.between(1, 100))};
    wall_.us += static_cast<std::int64_t>(random_.below(2'000'000));
    start();
    const log::Unfinished before = saved_.front().unfinished;
    const auto now_stored = test::stored_cursors(topic_->groups(), {now_, wall_});
    ASSERT_EQ(now_stored.size(), 1U);
    const log::Unfinished& after = now_stored.front().unfinished;
    EXPECT_EQ(after.next, before.next);
    EXPECT_EQ(after.messages, before.messages);
    EXPECT_EQ(after.delivery_bits, before.delivery_bits);
    const DeliveryCounts counts(before.delivery_bits);
    const auto due_times = due_times_of(before);
    const auto due_times_after = due_times_of(after);
    open_.clear();
    for (std::uint64_t at = before.next.value; at < published_; ++at) open_[at] = {};
    before.messages.for_each([&](OffsetRange run) {
      for (std::uint64_t at = run.begin.value; at < run.end.value; ++at) {
        Open& message = open_[at];
        message = {};
        message.deliveries = counts.of({at});
        const auto due = due_times.find(at);
        if (due == due_times.end()) continue;
        message.due_us = due->second;
        message.late_us = 8'000;
        if (due->second <= wall_.us) continue;
        EXPECT_GE(due_times_after.at(at), due->second);
        EXPECT_LT(due_times_after.at(at), due->second + message.late_us);
      }
    });
  }

  Random& random_;
  std::unique_ptr<log::BatchLog> log_ =
      std::make_unique<log::RingLog>(log::RingLogOptions{.capacity_bytes = 16 * limits::KiB});
  test::FaultyStorage storage_;
  SteadyTime now_{std::chrono::hours(1)};
  Timestamp wall_{1'000'000'000'000};
  std::vector<log::NamedCursor> saved_;  // from the file
  std::unique_ptr<Topic> topic_;
  std::unique_ptr<GroupCursors> cursors_;
  ConsumerGroup* group_ = nullptr;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<Puller>> pullers_;
  std::uint64_t published_ = 0;
  std::map<std::uint64_t, Open> open_;
  bool is_saving_ = false;
  std::set<std::uint64_t> open_since_begin_;
};

TEST(GroupSaves, MissNoMessageWhateverHappensBetweenThePieces) {
  int saves = 0, pieces = 0, restarts = 0, drops = 0, seeks = 0;
  for (int run = 0; run < 60; ++run) {
    Random random(run);
    SavesModel model(random);
    for (int step = 0; step < 1000; ++step) {
      model.step();
      ASSERT_FALSE(testing::Test::HasFailure()) << "step " << step << " of run " << run;
      ASSERT_NO_FATAL_FAILURE(model.check()) << "step " << step << " of run " << run;
    }
    model.finish();
    ASSERT_FALSE(testing::Test::HasFailure()) << "run " << run;
    saves += model.saves;
    pieces += model.pieces;
    restarts += model.restarts;
    drops += model.drops;
    seeks += model.seeks;
  }
  EXPECT_GT(saves, 1000);
  EXPECT_GT(pieces, 2 * saves) << "most saves have several pieces";
  EXPECT_GT(restarts, 100);
  EXPECT_GT(drops, 30);
  EXPECT_GT(seeks, 60);
}

}  // namespace
}  // namespace lightq::broker
