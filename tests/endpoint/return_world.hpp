/// A topic with dead messages, which move to another topic and are given back. Both are on one disk, which is
/// cut before each call that changes it, and with an end before each passing of letters and answers.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "delivery/consumer_group_harness.hpp"
#include "endpoint/topic_runtime_harness.hpp"
#include "topic/dead/group_letters.hpp"
#include "topic/dead/letter_office.hpp"

namespace lightq::broker {

/// The topic "source" with the group "workers", beside the harness's topic "orders", which receives the
/// letters. The group's consumer rejects messages, which die at once, or acknowledges them.
class ReturnWorld : public TopicRuntimeTest, public LetterPost {
 protected:
  static constexpr TopicId source_id{2};
  static constexpr TopicId letters_id{1};
  static constexpr const char* group_name = "workers";

  ReturnWorld(protocol::BrokerType source_type, protocol::BrokerType letters_type)
      : TopicRuntimeTest({.broker_type = letters_type,
                          .ring_bytes = limits::ring_bytes_min,
                          .segment_bytes = limits::segment_bytes_min},
                         100),
        source_type_(source_type) {
    arm(0);
    EXPECT_TRUE(open_source());
  }
  ~ReturnWorld() override { close_source(); }

  // --- The broker.

  bool open_source() {
    protocol::TopicSettings settings{.broker_type = source_type_,
                                     .ring_bytes = limits::ring_bytes_min,
                                     .segment_bytes = limits::segment_bytes_min};
    TopicDefinition definition{source_id, *TopicName::parse("source"), settings};
    const StorageSettings storage_settings{.topics_directory = "/topics", .flush_interval_ms = 100};
    auto opened = TopicOpener(storage, *pool).open(definition, storage_settings, wall_time(), sink);
    if (!opened) return false;
    if (forgets_marks)
      std::erase_if(opened->stored, [](const auto& cursor) { return cursor.name.starts_with("given:"); });
    auto store = opened->take_store(disk(), loop());
    source_store = store.get();
    source = std::make_unique<TopicRuntime>(context(), ticker_, make_endpoint_set, definition,
                                            std::move(store), std::move(opened).value_or_throw());
    protocol::GroupSettings group;
    group.max_attempts = 1;
    group.dead_letter_topic = "orders";
    source->letters().groups().set_settings(group_name, {group, letters_id});
    office = std::make_unique<LetterOffice>(LetterOffice::Parts{
        .loop = loop(),
        .sink = sink,
        .find_topic = [this](TopicId id) { return id == source_id ? source.get() : topic.get(); },
        .waiting_groups = groups_with_letters,
        .source_of = letters_of_group});
    office->connect(*this);
    ticker_.office = office.get();
    if (!groups_with_letters(*source).empty()) office->wake(source_id);
    if (topic->letter_book().run() != 0) office->returns().resume(letters_id);
    return true;
  }
  void close_source() {
    ticker_.office = nullptr;
    office.reset();
    post_.clear();
    if (source == nullptr) return;
    leave();
    source->begin_stop(ClientError::shutting_down);
    EXPECT_TRUE(run_until([this] { return source->idle_on_disk(); }));
    source.reset();
    ticker_.wanted = false;
    saves_under_way_ = 0;
  }
  bool event() {
    if (is_dead) return false;
    if (++events_ == end_at_) is_dead = true;
    return !is_dead;
  }
  /// Ends the process before event number `end` from now on. 0: never.
  void arm(std::uint64_t end) {
    events_ = 0;
    end_at_ = end;
    fail(EIO, [this](FaultyStorage::Call call, const std::string&) {
      const bool changes = call != FaultyStorage::Call::read && call != FaultyStorage::Call::map;
      return changes ? !event() : is_dead.load();
    });
  }
  /// Ends the process now, perhaps with a power cut, and starts it again. The next process ends before its
  /// event `next_end`, perhaps while it starts; then another one starts.
  void crash(bool cut, bool keeps, std::uint64_t next_end) {
    for (;; next_end = 0) {
      is_dead = true;
      close_source();
      acked_in_life_.clear();
      drop();
      if (cut) storage.power_cut([keeps] { return keeps; });
      is_dead = false;
      arm(next_end);
      const bool started = try_start().ok() && open_source();
      if (started) return;
      ASSERT_TRUE(is_dead) << "a topic does not open";
    }
  }

  // --- Clients.

  /// Publishes a message whose key is that of its payload up to a colon.
  void publish(const std::string& payload) {
    BatchBuilder batch;
    const std::string key = "key of " + payload.substr(0, payload.find(':'));
    batch.add(as_byte_view(payload), Attributes{.key = key});
    source->publishing().publish(batch);
    source->publishing().want_flush();
    source->dispatch().published();
  }
  void leave() {
    if (consumer_ != nullptr) source->detach_consumer(*consumer_);
    consumer_.reset();
  }
  void consume() {
    if (!consumes) return;
    if (consumer_ == nullptr) {
      consumer_ = std::make_unique<test::FakeConsumer>();
      ASSERT_EQ(source->open_consumer(test::asked(group_name), *consumer_).code, ClientError::none);
    }
    for (const auto& frame : std::exchange(consumer_->frames, {})) {
      if (rejects) {
        broker::reject(*source, *consumer_, {.delay_ms = 0, .ranges = {frame.range}},
                       EventLoop::Clock::now());
        continue;
      }
      for (const std::string& payload : frame.payloads) {
        deliveries[payload] = frame.delivery;
        if (final_.contains(payload)) twice_ = payload;
        acked_.insert(payload);
        acked_in_life_.insert(payload);
      }
      broker::acknowledge(*source, *consumer_, {.before = {}, .ranges = {frame.range}});
      ++saves_under_way_;
      source->letters().save([this, acked = acked_in_life_](const Result<std::uint64_t>& saved) {
        --saves_under_way_;
        if (saved) final_.insert(acked.begin(), acked.end());
      });
    }
  }
  /// Forgets the acknowledgements so far.
  void forget_consumed() {
    acked_.clear();
    acked_in_life_.clear();
    final_.clear();
    deliveries.clear();
  }
  void step() {
    turn(std::chrono::microseconds(100));
    if (is_dead) return;
    if (std::exchange(ticker_.wanted, false)) ticker_.wanted = source->tick() || ticker_.wanted;
    if (!post_.empty() && event()) {
      const Task task = std::move(post_.front());
      post_.pop_front();
      task(*office);
    }
    if (!is_dead) consume();
  }
  template <typename Condition>
  bool steps_until(Condition&& condition) {
    for (int turns = 0; turns < 6000; ++turns) {
      if (is_dead || condition()) return true;
      step();
    }
    return false;
  }
  [[nodiscard]] ConsumerGroup* group() { return source->letters().groups().find(group_name); }
  /// Returns true if the group has finished every message of its topic, and no letter moves.
  bool is_quiet() {
    const bool finished = group() != nullptr && group()->committed() == source->store().next_offset();
    return finished && post_.empty() && topic->letter_book().run() == 0 && saves_under_way_ == 0;
  }
  /// Publishes messages, which die and become letters.
  void make_letters(const std::vector<std::string>& payloads) {
    rejects = true;
    for (const std::string& payload : payloads) publish(payload);
    EXPECT_TRUE(steps_until([&] { return group() != nullptr && is_quiet(); }));
    rejects = false;
  }
  /// Gives letters back. `returned` has the result.
  void retry(DeadFilter filter = {}) {
    returned.reset();
    office->returns().act(
        letters_id, LetterAction::give_back, std::move(filter),
        [this](std::string_view name) { return forbidden_source != name; },
        [this](const Result<LetterCounts>& result) { returned = result; });
  }
  /// Returns the payloads of the letters that wait.
  std::set<std::string> waiting_letters() {
    std::set<std::string> payloads;
    std::optional<Offset> from = Offset{0};
    while (from) {
      LetterPiece piece = scan_letters(*topic, {}, {*from, 100});
      if (piece.is_pending) {
        ADD_FAILURE() << "a letter cannot be read";
        break;
      }
      for (const FoundLetter& letter : piece.letters) payloads.insert(payload_at(*topic, letter.offset));
      from = piece.next;
    }
    return payloads;
  }
  /// Returns all payloads in a topic's log, by offset.
  static std::vector<std::pair<Offset, std::string>> payloads_in(TopicRuntime& in) {
    std::vector<std::pair<Offset, std::string>> all;
    auto& store = const_cast<TopicStore&>(std::as_const(in).store());
    log::ReadPosition place{store.first_offset()};
    while (place.offset < store.next_offset()) {
      const auto read = store.read(place);
      if (read.outcome == log::ReadOutcome::damaged && place.offset < read.next) {
        place = log::ReadPosition{read.next};  // a power cut keeps parts of a message that was not synced
        continue;
      }
      if (read.outcome != log::ReadOutcome::batch) {
        ADD_FAILURE() << "a topic cannot be read";
        break;
      }
      Offset offset = read.batch.base_offset();
      for (auto& payload : test::payloads_of(read.batch)) {
        all.emplace_back(offset, std::move(payload));
        offset = offset + 1;
      }
      place.offset = read.batch.end_offset();
    }
    return all;
  }
  static std::string payload_at(TopicRuntime& in, Offset offset) {
    for (auto& [at, payload] : payloads_in(in))
      if (at == offset) return payload;
    return "none";
  }
  int copies_in_source(const std::string& payload) {
    const auto all = payloads_in(*source);
    return static_cast<int>(
        std::ranges::count_if(all, [&](const auto& entry) { return entry.second == payload; }));
  }

  // Implements LetterPost.
  [[nodiscard]] std::optional<TopicId> find(const std::string& name) const override {
    if (name == "source" && !source_is_gone) return source_id;
    return name == "orders" ? std::optional(letters_id) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::string> name_of(TopicId id) const override {
    return id == source_id ? "source" : "orders";
  }
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
  TopicStore* source_store = nullptr;  // owned by `source`
  std::unique_ptr<LetterOffice> office;
  bool consumes = true;
  bool rejects = false;
  bool source_is_gone = false;
  bool forgets_marks = false;  ///< a fault: a restart of the source forgets how far each run has come
  std::string forbidden_source;
  std::optional<Result<LetterCounts>> returned;
  std::map<std::string, std::uint32_t> deliveries;  ///< the number of the last delivery, by payload
  std::string twice_;  ///< a message that was delivered although its acknowledgement was saved
  std::set<std::string> acked_;
  std::set<std::string> acked_in_life_;  ///< since the last crash, which loses what is not saved
  std::set<std::string> final_;          ///< acknowledged, and that was saved
  std::atomic<bool> is_dead = false;

 private:
  int saves_under_way_ = 0;
  const protocol::BrokerType source_type_;
  std::unique_ptr<test::FakeConsumer> consumer_;
  std::deque<Task> post_;
  std::atomic<std::uint64_t> events_ = 0;
  std::atomic<std::uint64_t> end_at_ = 0;
};

}  // namespace lightq::broker
