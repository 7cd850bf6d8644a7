/// Tests of a schedule in memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <utility>

#include "delayed/delayed_query.hpp"
#include "delayed/schedule.hpp"

namespace lightq::broker {
namespace {

log::AppendResult append_to(Schedule& schedule, std::int64_t due, const std::string& payload,
                            std::int64_t time, std::string_view id = {}) {
  BatchBuilder builder;
  builder.add(as_byte_view(payload), Attributes{.deliver_at = {due}, .id = id},
              AttributeKinds(AttributeKinds::dues));
  return schedule.append(builder.finish({.producer_id = 1}), {time});
}

TEST(ScheduleInMemory, MovesInTheOrderOfDueTimesAndNumbers) {
  std::mt19937_64 random(3);
  Schedule schedule;
  std::multimap<std::int64_t, std::string> model;  // equal due times keep the order of insertion
  std::int64_t now = 1'000'000;
  std::size_t moved = 0;
  MoveBatch batch;
  for (int operation = 0; operation < 20'000; ++operation) {
    const std::int64_t due = now + static_cast<std::int64_t>(random() % 500);
    const std::string payload = std::to_string(operation);
    ASSERT_EQ(append_to(schedule, due, payload, now).outcome, log::AppendOutcome::appended);
    model.emplace(due, payload);
    now += static_cast<std::int64_t>(random() % 5);
    if (random() % 3 != 0) continue;
    while (schedule.take_due(batch, {now}, 2'000)) {
      const auto bytes = batch.finish(9, moved);
      for (auto record = BatchView::trusted(bytes.data()).records(); !record.done(); record.next()) {
        ASSERT_LE(model.begin()->first, now);
        ASSERT_EQ(as_text(record.payload()), model.begin()->second);
        model.erase(model.begin());
        ++moved;
      }
      schedule.moved(batch, {}, {now});
    }
    ASSERT_TRUE(model.empty() || now < model.begin()->first);
  }
  EXPECT_EQ(schedule.waiting().size(), model.size());
  EXPECT_EQ(schedule.stats().moved, moved);
}

TEST(ScheduleInMemory, CommandsFindMessagesByNumberTimeAndId) {
  Schedule schedule;
  for (int each = 0; each < 10; ++each)
    append_to(schedule, 1'000 + each, "m" + std::to_string(each), 10, each % 2 == 0 ? "even" : "odd");
  DelayedFilter by_id{.id = "even"};
  const DelayedList list = DelayedQuery(schedule, by_id).list({}, 3);
  ASSERT_EQ(list.messages.size(), 3U);
  EXPECT_TRUE(list.more);
  EXPECT_EQ(as_text(list.messages[1].payload()), "m2");
  EXPECT_EQ(list.messages[1].attributes().id(), "even");
  EXPECT_EQ(list.messages[1].arrived, Timestamp{10});
  EXPECT_EQ(DelayedQuery(schedule, by_id).list(list.next, 9).messages.size(), 2U);

  DelayedFilter by_time{.from = Timestamp{1'008}, .until = Timestamp{1'009}};
  EXPECT_EQ(DelayedQuery(schedule, by_time).act(DelayedAction::reschedule, {}, {5'000}, {20})->done, 1U);
  EXPECT_EQ(DelayedQuery(schedule, {}).list({}, 99).messages.back().due, Timestamp{5'000});

  DelayedFilter by_number{.numbers = {{1, 2}, {3, 5}, {500, 501}}};
  const auto piece = DelayedQuery(schedule, by_number).act(DelayedAction::cancel, {}, {}, {20});
  EXPECT_EQ(piece->done, 3U);
  EXPECT_EQ(piece->unknown, 1U);
  EXPECT_EQ(piece->answers,
            (std::vector<DelayedAnswer>{{1, DelayedOutcome::done}, {500, DelayedOutcome::unknown}}));
  EXPECT_EQ(schedule.waiting().size(), 7U);

  DelayedFilter hurried{.numbers = {{2, 3}}};
  EXPECT_EQ(DelayedQuery(schedule, hurried).act(DelayedAction::hurry, {}, {}, {20})->done, 1U);
  MoveBatch batch;
  ASSERT_TRUE(schedule.take_due(batch, {20}, 9'999));
  schedule.moved(batch, {}, {20});
  EXPECT_EQ(DelayedQuery(schedule, hurried).act(DelayedAction::hurry, {}, {}, {20})->too_late, 1U);
  EXPECT_EQ(DelayedQuery(schedule, hurried).act(DelayedAction::cancel, {}, {}, {20})->too_late, 1U);
}

TEST(ScheduleInMemory, CommandsAndMovesDivideRuns) {
  std::mt19937_64 random(4);
  Schedule schedule;
  std::map<std::pair<std::int64_t, std::uint64_t>, std::string> model;  // by due time and number
  std::map<std::uint64_t, std::int64_t> dues;                           // by number
  std::int64_t now = 1'000'000;
  std::size_t moved = 0;
  MoveBatch batch;
  for (int operation = 0; operation < 5'000; ++operation) {
    if (random() % 3 == 0) {
      BatchBuilder builder;
      const std::int64_t due = now + static_cast<std::int64_t>(random() % 300);
      const std::size_t messages = 1 + random() % 50;
      for (std::size_t each = 0; each < messages; ++each) {
        std::string payload = std::to_string(operation) + "." + std::to_string(each);
        payload.resize(12, ' ');
        model[{due, schedule.next_number() + each}] = payload;
        dues[schedule.next_number() + each] = due;
        builder.add(as_byte_view(payload), Attributes{.deliver_at = {due}},
                    AttributeKinds(AttributeKinds::dues));
      }
      ASSERT_EQ(schedule.append(builder.finish({.producer_id = 1}), {now}).outcome,
                log::AppendOutcome::appended);
    }
    if (random() % 3 == 0 && !dues.empty()) {  // neighbours: a part of one run, or parts of several
      auto first = dues.lower_bound(random() % schedule.next_number());
      if (first == dues.end()) first = dues.begin();
      const DelayedFilter filter{.numbers = {{first->first, first->first + 1 + random() % 30}}};
      const bool cancels = random() % 2 == 0;
      const std::int64_t due = now + static_cast<std::int64_t>(random() % 300);
      const auto piece =
          DelayedQuery(schedule, filter)
              .act(cancels ? DelayedAction::cancel : DelayedAction::reschedule, {}, {due}, {now});
      std::size_t meant = 0;
      for (auto at = first; at != dues.end() && at->first < filter.numbers[0].end; ++meant) {
        auto node = model.extract({at->second, at->first});
        // A past time means now, and leaves a message that is due already as it is.
        if (!cancels && (now < due || now < at->second)) at->second = std::max(due, now);
        node.key() = {at->second, at->first};
        if (!cancels) model.insert(std::move(node));
        at = cancels ? dues.erase(at) : std::next(at);
      }
      ASSERT_EQ(piece->done, meant);
    }
    now += static_cast<std::int64_t>(random() % 40);
    if (random() % 2 == 0 && schedule.take_due(batch, {now}, 1 + random() % 1'000)) {
      const auto bytes = batch.finish(9, moved);
      ASSERT_FALSE(BatchView::check_produced(bytes).fault);
      for (auto record = BatchView::trusted(bytes.data()).records(); !record.done(); record.next()) {
        ASSERT_LE(model.begin()->first.first, now);
        ASSERT_EQ(as_text(record.payload()), model.begin()->second);
        dues.erase(model.begin()->first.second);
        model.erase(model.begin());
        ++moved;
      }
      schedule.moved(batch, {}, {now});
    }
    ASSERT_EQ(schedule.waiting().size(), model.size());
    ASSERT_EQ(schedule.waiting().bytes(), 12 * model.size());
  }
  EXPECT_GT(moved, 1'000U);
  const DelayedList list = DelayedQuery(schedule, {}).list({}, 9'999);
  ASSERT_EQ(list.messages.size(), model.size());
  auto expected = model.begin();
  for (const DelayedMessage& message : list.messages) {
    ASSERT_EQ(message.due.us, expected->first.first);
    ASSERT_EQ(as_text(message.payload()), (expected++)->second);
  }
}

}  // namespace
}  // namespace lightq::broker
