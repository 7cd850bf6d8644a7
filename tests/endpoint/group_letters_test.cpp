/// Tests of dead messages that move from a topic at work to another one: both on one disk, which is cut
/// before each call that changes it, and with crashes at each passing of letters.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "delivery/consumer_group_harness.hpp"
#include "endpoint/topic_runtime_harness.hpp"
#include "support/late_store.hpp"
#include "support/random.hpp"
#include "topic/dead/group_letters.hpp"
#include "topic/dead/letter_office.hpp"

namespace lightq::broker {
namespace {

using protocol::BrokerType;
using test::FakeConsumer;

constexpr TopicId source_id{2};
constexpr const char* group_name = "workers";
constexpr int letters_of_life = 3;

struct MoveRun {
  BrokerType type;
  bool cut;    ///< the power fails
  bool keeps;  ///< all bytes that were not synced stay
};

/// The topic "source" with a group, beside the harness's topic "orders", which receives the letters.
class GroupLettersTest : public TopicRuntimeTest,
                         public LetterPost,
                         public testing::WithParamInterface<MoveRun> {
 protected:
  GroupLettersTest()
      : TopicRuntimeTest({.broker_type = GetParam().type,
                          .ring_bytes = limits::ring_bytes_min,
                          .segment_bytes = limits::segment_bytes_min},
                         100) {
    arm(0);
    EXPECT_TRUE(open_source());
  }
  ~GroupLettersTest() override { close_source(); }

  // --- The broker.

  bool open_source() {
    protocol::TopicSettings settings{.broker_type = BrokerType::file,
                                     .segment_bytes = limits::segment_bytes_min};
    TopicDefinition definition{source_id, *TopicName::parse("source"), settings};
    if (has_target_) definition.groups.emplace(group_name, with_target());
    const StorageSettings storage_settings{.topics_directory = "/topics", .flush_interval_ms = 100};
    auto opened = TopicOpener(storage, *pool).open(definition, storage_settings, wall_time(), sink);
    if (!opened) return false;
    auto store = opened->take_store(disk(), loop());
    if (is_late_) {
      auto late = std::make_unique<test::LateStore>(std::move(store));
      late_ = late.get();
      store = std::move(late);
    }
    source = std::make_unique<TopicRuntime>(context(), ticker_, make_endpoint_set, definition,
                                            std::move(store), std::move(opened).value_or_throw());
    office = std::make_unique<LetterOffice>(LetterOffice::Parts{
        .loop = loop(),
        .sink = sink,
        .find_topic = [this](TopicId id) { return id == source_id ? source.get() : topic.get(); },
        .waiting_groups = groups_with_letters,
        .source_of = letters_of_group});
    office->connect(*this);
    ticker_.office = office.get();
    if (!groups_with_letters(*source).empty()) office->wake(source_id);
    return true;
  }
  static GroupSetup with_target() {
    protocol::GroupSettings group;
    group.max_attempts = 1;
    group.dead_letter_topic = "orders";
    return {group, {1}};
  }
  /// Sets the group's settings, as a command does: those with the dead-letter topic, or the defaults.
  void set_target(bool has_target) {
    has_target_ = has_target;
    source->commands().set_group_settings(group_name, has_target ? with_target() : GroupSetup(),
                                          [](const Result<std::uint64_t>&) {});
  }
  void close_source() {
    ticker_.office = nullptr;
    office.reset();
    post_.clear();
    if (source == nullptr) return;
    if (consumer_ != nullptr) source->detach_consumer(*consumer_);
    consumer_.reset();
    source->begin_stop(ClientError::shutting_down);
    EXPECT_TRUE(run_until([this] { return source->idle_on_disk(); }));
    source.reset();
    late_ = nullptr;
    ticker_.wanted = false;
  }
  bool event() {
    if (is_dead_) return false;
    if (++events_ == end_at_) is_dead_ = true;
    return !is_dead_;
  }
  void arm(std::uint64_t end) {
    events_ = 0;
    end_at_ = end;
    fail(EIO, [this](FaultyStorage::Call call, const std::string&) {
      const bool changes = call != FaultyStorage::Call::read && call != FaultyStorage::Call::map;
      return changes ? !event() : is_dead_.load();
    });
  }
  void crash(std::uint64_t next_end) {
    for (;; next_end = 0) {
      is_dead_ = true;
      close_source();
      drop();
      if (GetParam().cut) storage.power_cut([] { return GetParam().keeps; });
      is_dead_ = false;
      arm(next_end);
      const bool started = try_start().ok() && open_source();
      if (started) return;
      ASSERT_TRUE(is_dead_) << "a topic does not open";
    }
  }

  // --- Clients.

  void publish(int messages) {
    BatchBuilder batch;
    for (; messages > 0; --messages) {
      batch.clear();
      batch.add(as_byte_view("message " + std::to_string(++last_message_)));
      source->publishing().publish(batch);
    }
    source->publishing().want_flush();
    source->dispatch().published();
  }
  /// Rejects every message that it receives.
  void consume() {
    if (consumer_ == nullptr) {
      consumer_ = std::make_unique<FakeConsumer>();
      ASSERT_EQ(source->open_consumer(test::asked(group_name), *consumer_).code, ClientError::none);
    }
    for (const auto& frame : std::exchange(consumer_->frames, {})) {
      Rejection rejection{.delay_ms = 0, .ranges = {frame.range}};
      if (kills_) rejection.kind = RejectKind::dead;
      broker::reject(*source, *consumer_, rejection, EventLoop::Clock::now());
    }
  }
  void step() {
    turn(std::chrono::microseconds(100));
    if (is_dead_) return;
    if (late_ != nullptr && random_.one_in(3)) late_->arrive();
    if (std::exchange(ticker_.wanted, false)) ticker_.wanted = source->tick() || ticker_.wanted;
    if (!post_.empty() && event()) {
      const Task task = std::move(post_.front());
      post_.pop_front();
      task(*office);
    }
    if (!is_dead_) consume();
  }
  /// Returns true if the group has finished every message of its topic.
  bool is_finished() {
    ConsumerGroup* const group = source->letters().groups().find(group_name);
    return group != nullptr && group->committed() == source->store().next_offset();
  }
  void live(int messages) {
    if (!is_dead_) publish(messages);
    for (int turns = 0; turns < 3000 && !is_dead_; ++turns) {
      if (is_finished() && post_.empty()) return;
      step();
    }
    if (!is_dead_) ADD_FAILURE() << "the messages are not finished";
  }

  // --- Comparisons.

  static std::vector<std::string> payloads_in(TopicRuntime& in) {
    std::vector<std::string> all;
    auto& store = const_cast<TopicStore&>(std::as_const(in).store());
    log::ReadPosition place{store.first_offset()};
    while (place.offset < store.next_offset()) {
      const auto read = store.read(place);
      if (read.outcome != log::ReadOutcome::batch) {
        ADD_FAILURE() << "a topic cannot be read";
        break;
      }
      for (auto& payload : test::payloads_of(read.batch)) all.push_back(std::move(payload));
      place.offset = read.batch.end_offset();
    }
    return all;
  }
  std::string judge() {
    std::map<std::string, int> letters;
    for (const auto& payload : payloads_in(*topic)) ++letters[payload];
    const auto messages = payloads_in(*source);
    for (const auto& [payload, count] : letters) {
      if (count > 1) return payload + " is in the topic twice";
      if (std::ranges::find(messages, payload) == messages.end())
        return payload + " was moved, and is not stored";
    }
    for (const auto& payload : messages)
      if (!letters.contains(payload)) return payload + " is lost";
    return {};
  }

  /// Returns true if each message is finished or parked.
  bool is_settled() {
    ConsumerGroup* const group = source->letters().groups().find(group_name);
    if (group == nullptr) return false;
    const GroupMessages& messages = group->messages();
    const Offset first = source->store().first_offset();
    return messages.ready(first, source->store().next_offset()) == 0 && messages.in_flight() == 0 &&
           messages.retrying() == 0 && messages.dead_waiting() == 0;
  }
  /// Runs until each message is finished or parked, or the process has ended. The dead-letter topic is
  /// removed after `turns_before` turns.
  void settle(int turns_before) {
    for (int turns = 0; turns < 3000 && !is_dead_; ++turns) {
      if (turns == turns_before) set_target(false);
      if (turns > turns_before && is_settled() && post_.empty()) return;
      step();
    }
    if (!is_dead_) ADD_FAILURE() << "the messages are not settled";
  }
  /// Returns a complaint unless each message is either in the topic, once, or parked.
  std::string judge_parked() {
    std::map<std::string, int> places;
    for (const auto& payload : payloads_in(*topic)) ++places[payload];
    const auto messages = payloads_in(*source);
    const std::uint64_t first = source->store().first_offset().value;
    ConsumerGroup& group = *source->letters().groups().find(group_name);
    for (std::optional<Offset> from = Offset{0}; from;) {
      const DeadList list = group.dead().list({}, *from, 1000);
      for (const DeadMessage& dead : list.messages) ++places[messages.at(dead.offset.value - first)];
      from = list.next;
    }
    for (const auto& payload : messages)
      if (places[payload] != 1) return payload + " is in " + std::to_string(places[payload]) + " places";
    return {};
  }

  // Implements LetterPost.
  [[nodiscard]] std::optional<TopicId> find(const std::string&) const override { return TopicId{1}; }
  [[nodiscard]] std::optional<std::string> name_of(TopicId) const override { return "orders"; }
  [[nodiscard]] bool send(TopicId, Task task) override {
    post_.push_back(std::move(task));
    return true;
  }
  void answer(TopicId, Task task) override { post_.push_back(std::move(task)); }

  struct SourceTicker final : TopicTicker {
    void tick_wanted(TopicRuntime&) override { wanted = true; }
    void letters_wait(TopicRuntime& waiting) override {
      if (office != nullptr) office->wake(waiting.definition().id);
    }
    bool wanted = false;
    LetterOffice* office = nullptr;
  };

  SourceTicker ticker_;
  std::unique_ptr<TopicRuntime> source;
  std::unique_ptr<LetterOffice> office;
  std::unique_ptr<FakeConsumer> consumer_;
  std::deque<Task> post_;
  std::atomic<bool> is_dead_ = false;
  std::atomic<std::uint64_t> events_ = 0;
  std::atomic<std::uint64_t> end_at_ = 0;
  int last_message_ = 0;
  bool is_late_ = false;  // reads of the source take some turns
  test::LateStore* late_ = nullptr;
  bool has_target_ = true;  // the catalogue's word, which a crash does not change
  bool kills_ = false;      // the consumer declares each message dead
  test::Random random_;
};

TEST_P(GroupLettersTest, EachDeadMessageIsInTheOtherTopicOnceWhateverIsCut) {
  std::uint64_t end = 1;
  for (bool was_cut = true; was_cut; ++end) {
    arm(end);
    live(letters_of_life);
    was_cut = is_dead_;
    crash(random_.one_in(2) ? random_.between(1, 60) : 0);
    live(1);
    if (is_dead_) crash(0);
    live(1);
    ASSERT_EQ(judge(), "") << "cut before event " << end;
    ASSERT_LT(end, 400U);
  }
  EXPECT_GT(end, 15U);  // a run with fewer events proves nothing
  std::printf("%llu cuts, %zu letters\n", static_cast<unsigned long long>(end - 2),
              payloads_in(*topic).size());
}

TEST_P(GroupLettersTest, EachMessageIsMovedOrParkedWhenTheTopicIsRemovedWhateverIsCut) {
  kills_ = true;
  constexpr std::uint64_t cuts = 60;  // the last ones come when there is nothing left to cut
  for (std::uint64_t end = 1; end < cuts; ++end) {
    set_target(true);
    arm(end);
    publish(letters_of_life);
    settle(static_cast<int>(random_.between(0, 120)));
    set_target(false);
    crash(random_.one_in(2) ? random_.between(1, 60) : 0);
    if (!is_dead_) settle(0);
    is_dead_ ? crash(0) : arm(0);
    settle(0);
    ASSERT_EQ(judge_parked(), "") << "cut before event " << end;
  }
  EXPECT_GT(payloads_in(*topic).size(), 10U);
  EXPECT_GT(source->letters().groups().find(group_name)->dead().parked(), 10U);
}

class LateLettersTest : public GroupLettersTest {
 protected:
  /// Lets messages die, and restarts their topic before they are moved: nothing of it was read then.
  void die_before_a_start() {
    ticker_.office = nullptr;
    publish(letters_of_life);
    const auto waiting = [this] {
      ConsumerGroup* const group = source->letters().groups().find(group_name);
      return group == nullptr ? 0 : group->dead().waiting();
    };
    for (int turns = 0; turns < 1000 && waiting() < letters_of_life; ++turns) step();
    bool is_saved = false;
    source->letters().save([&](const Result<std::uint64_t>& saved) { is_saved = saved.ok(); });
    for (int turns = 0; turns < 1000 && !is_saved; ++turns) step();
    ASSERT_TRUE(is_saved);
    close_source();
    is_late_ = true;
    ASSERT_TRUE(open_source());
    ASSERT_EQ(waiting(), std::uint64_t{letters_of_life});
  }
};

TEST_P(LateLettersTest, AMessageThatTheStoreIsReadingIsNoFailure) {
  die_before_a_start();
  for (int turns = 0; turns < 3000 && !is_finished(); ++turns) step();
  EXPECT_EQ(payloads_in(*topic).size(), std::size_t{letters_of_life});
  EXPECT_EQ(sink.errors, 0);
}

std::string move_name(const testing::TestParamInfo<MoveRun>& run) {
  return std::string(run.param.type == BrokerType::file ? "File" : "QueueFile") + (!run.param.cut ? "Kill"
                                                                                   : run.param.keeps
                                                                                       ? "CutKeepsAll"
                                                                                       : "CutKeepsNothing");
}
INSTANTIATE_TEST_SUITE_P(Runs, GroupLettersTest,
                         testing::Values(MoveRun{BrokerType::file, false, false},
                                         MoveRun{BrokerType::file, true, false},
                                         MoveRun{BrokerType::file, true, true},
                                         MoveRun{BrokerType::queue_file, false, false},
                                         MoveRun{BrokerType::queue_file, true, false}),
                         move_name);
INSTANTIATE_TEST_SUITE_P(Late, LateLettersTest, testing::Values(MoveRun{BrokerType::file, false, false}),
                         move_name);

}  // namespace
}  // namespace lightq::broker
