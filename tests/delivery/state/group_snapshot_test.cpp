/// Tests of the form in which a group's state is saved: it has each message in flight once, and never
/// anything that a reader would refuse.
#include "delivery/snapshot/group_snapshot.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "log/saved_state/cursor_file.hpp"
#include "support/faulty_storage.hpp"
#include "support/random.hpp"

namespace lightq::broker {
namespace {

using std::chrono::milliseconds;
using test::FaultyStorage;
using test::Random;

constexpr SteadyTime snapshot_time{std::chrono::hours(100)};

/// Returns the cursor as it is after it was written and read.
std::optional<log::NamedCursor> read_again(const GroupSnapshot& snapshot) {
  FaultyStorage storage;
  log::CursorFile file(storage, "/topics/1");
  EXPECT_TRUE(
      file.write(log::CursorFile::encode({{"group:g", snapshot.committed, snapshot.unfinished()}})).ok());
  const auto loaded = log::CursorFile(storage, "/topics/1").load();
  if (!loaded) {
    ADD_FAILURE() << loaded.error().text();
    return std::nullopt;
  }
  return loaded->front();
}

TEST(GroupSnapshot, HasEachMessageOnceWithTheNumberThatWasNotedLast) {
  for (int run = 0; run < 200; ++run) {
    Random random(run);
    constexpr std::uint64_t messages = 300;
    GroupSnapshot snapshot;
    snapshot.committed = {random.below(20)};
    snapshot.next = {messages - random.below(20)};
    std::map<std::uint64_t, std::uint32_t> plain;
    const auto range = [&](std::uint64_t most) {
      const std::uint64_t begin = random.below(messages);
      return OffsetRange{{begin}, {std::min(messages, begin + random.between(1, most))}};
    };
    for (std::uint64_t left = random.below(run % 2 == 0 ? 10 : 300); left != 0; --left) {
      const CountedRange noted{range(20), static_cast<std::uint32_t>(random.below(9))};
      snapshot.in_flight.add(noted.range, noted.deliveries);
      for (auto at = noted.range.begin.value; at < noted.range.end.value; ++at) plain[at] = noted.deliveries;
    }
    std::map<std::uint64_t, std::uint32_t> queue;
    for (std::uint64_t left = random.below(run % 3 == 0 ? 300 : 10); left != 0; --left) {
      const std::uint64_t at = random.below(messages);
      if (queue.contains(at)) continue;
      queue[at] = static_cast<std::uint32_t>(random.below(9));
      if (random.one_in(3)) {
        snapshot.waiting.add_delayed({{at}, {at + 1}}, queue[at],
                                     snapshot_time + milliseconds(8 * random.below(9)));
      } else {
        snapshot.waiting.add({{at}, {at + 1}}, queue[at]);
      }
    }
    for (const auto& [at, deliveries] : queue) plain[at] = deliveries;
    const auto cursor = read_again(snapshot);
    ASSERT_TRUE(cursor.has_value());
    const DeliveryCounts counts(cursor->unfinished.delivery_bits);
    for (std::uint64_t at = 0; at < messages; ++at) {
      const bool in_bounds = snapshot.committed.value <= at && at < snapshot.next.value;
      ASSERT_EQ(cursor->unfinished.messages.contains({at}), in_bounds && plain.contains(at)) << at;
      if (in_bounds && plain.contains(at)) {
        ASSERT_EQ(counts.of({at}), plain[at]) << at;
      }
    }
  }
}

TEST(GroupSnapshot, MessagesOutsideItsBoundsAreNotSaved) {
  GroupSnapshot snapshot;
  snapshot.clocks = {snapshot_time, Timestamp{1'000'000'000}};
  snapshot.committed = {10};
  snapshot.next = {20};
  snapshot.waiting.add({{2}, {14}}, 5);
  snapshot.waiting.add_delayed({{16}, {30}}, 3, snapshot_time + milliseconds(80));
  snapshot.waiting.add_delayed({{40}, {50}}, 3, snapshot_time + milliseconds(160));
  snapshot.in_flight.add({{15}, {100}}, 2);
  snapshot.in_flight.add({{0}, {3}}, 2);
  const auto cursor = read_again(snapshot);
  ASSERT_TRUE(cursor.has_value());
  EXPECT_EQ(cursor->unfinished.messages.size(), 9U) << "10 to 13, and 15 to 19";
  EXPECT_EQ(cursor->unfinished.messages.first(), Offset{10});
  EXPECT_EQ(cursor->unfinished.messages.end(), Offset{20});
  ASSERT_EQ(cursor->unfinished.delayed.size(), 1U);
  EXPECT_EQ(cursor->unfinished.delayed[0].second.size(), 4U);
  const DeliveryCounts counts(cursor->unfinished.delivery_bits);
  EXPECT_EQ(counts.of({13}), 5U);
  EXPECT_EQ(counts.of({15}), 2U);
  EXPECT_EQ(counts.of({16}), 3U);
  snapshot.next = {5};
  const auto behind = read_again(snapshot);
  ASSERT_TRUE(behind.has_value());
  EXPECT_TRUE(behind->unfinished.messages.empty()) << "the next message is before the committed offset";
}

TEST(GroupSnapshot, SavesTheDueTimesOfCarriedMessagesAndNoneOfThoseGivenUp) {
  GroupSnapshot snapshot;
  snapshot.next = {100};
  snapshot.waiting.add_delayed({{0}, {100}}, 1, snapshot_time);
  snapshot.waiting.give_up_before({10});
  EXPECT_EQ(snapshot.unfinished().delayed.front().second.first(), Offset{10});
  log::OffsetSet carried;
  carried.add({{12}, {13}});
  snapshot.waiting.give_up_before({50}, carried, {10});
  const auto cursor = read_again(snapshot);
  ASSERT_TRUE(cursor.has_value());
  ASSERT_EQ(cursor->unfinished.delayed.size(), 1U);
  EXPECT_EQ(cursor->unfinished.delayed.front().second, cursor->unfinished.messages);
  EXPECT_EQ(cursor->unfinished.messages.size(), 51U);
}

TEST(GroupSnapshot, TimesBeyondTheMostBecomeTheLatest) {
  constexpr std::uint64_t times = log::Unfinished::delayed_max + 10;
  GroupSnapshot snapshot;
  snapshot.clocks = {snapshot_time, Timestamp{1'000'000'000}};
  snapshot.next = {2 * times};
  for (std::uint64_t i = 0; i < times; ++i)
    snapshot.waiting.add_delayed({{2 * i}, {2 * i + 1}}, 1, snapshot_time + milliseconds(8 * i));
  const auto cursor = read_again(snapshot);
  ASSERT_TRUE(cursor.has_value());
  const auto& delayed = cursor->unfinished.delayed;
  ASSERT_EQ(delayed.size(), log::Unfinished::delayed_max);
  EXPECT_EQ(delayed.back().second.size(), 11U);
  EXPECT_EQ(delayed.back().first,
            snapshot.clocks.wall_time_of(snapshot_time + milliseconds(8 * (times - 1))));
}

TEST(GroupSnapshot, ReadsTheNumbersOfDeliveriesOfTheGoldenFile) {
  std::ifstream golden(std::string(LIGHTQ_GOLDEN_DIR) + "/cursors.v3", std::ios::binary);
  ASSERT_TRUE(golden.good());
  const std::string bytes{std::istreambuf_iterator<char>(golden), {}};
  FaultyStorage storage;
  ASSERT_TRUE(storage.open("/topics/1/cursors.1", log::OpenMode::create).ok());
  const ByteView view = as_byte_view(bytes);
  storage.bytes_of("/topics/1/cursors.1") = {view.begin(), view.end()};
  const auto loaded = log::CursorFile(storage, "/topics/1").load();
  ASSERT_TRUE(loaded.ok()) << loaded.error().text();
  const auto& cursor = loaded->front();
  ASSERT_EQ(cursor.name, "group:default");
  const DeliveryCounts counts(cursor.unfinished.delivery_bits);
  EXPECT_EQ(counts.of({7}), 4U) << "it is in the sets of bit 0 and bit 2: 5, exclusive-or 1";
  EXPECT_EQ(counts.of({200}), 0U) << "it is in the set of bit 0: 1, exclusive-or 1";
}

}  // namespace
}  // namespace lightq::broker
