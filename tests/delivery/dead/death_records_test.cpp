/// Tests the records of dead messages, and copies of them.
#include "delivery/dead/death_records.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/random.hpp"

namespace lightq::broker {
namespace {

using Reasons = std::map<std::uint64_t, std::string>;
constexpr OffsetRange all_offsets{{0}, {UINT64_MAX}};

DeathRecords::Record record_with(std::string reason) {
  return std::make_shared<const DeathRecord>(DeathRecord{{1}, {2}, std::move(reason)});
}

Reasons reasons_in(const DeathRecords& records, OffsetRange range = all_offsets) {
  Reasons reasons;
  std::uint64_t before = 0;
  records.visit(range, [&](Offset offset, const DeathRecord& record) {
    EXPECT_TRUE(reasons.empty() || before < offset.value);
    before = offset.value;
    reasons.emplace(offset.value, record.reason);
    return true;
  });
  return reasons;
}

void expect_same(const DeathRecords& records, const Reasons& model) {
  ASSERT_EQ(reasons_in(records), model);
  ASSERT_EQ(records.size(), model.size());
  std::size_t bytes = 0;
  for (const auto& [offset, reason] : model) bytes += reason.size();
  ASSERT_EQ(records.reason_bytes(), bytes);
  ASSERT_LE(records.pieces(), 2 * model.size() / DeathRecords::merged_max + 1);
}

TEST(DeathRecords, AreFoundByTheirOffset) {
  DeathRecords records;
  EXPECT_EQ(records.find({0}), nullptr);
  EXPECT_EQ(records.remove(all_offsets), 0U);
  for (std::uint64_t at = 0; at < 1000; at += 2) records.add({at}, record_with(std::to_string(at)));
  records.add({4}, record_with("later"));
  ASSERT_NE(records.find({4}), nullptr);
  EXPECT_EQ(records.find({4})->reason, "4") << "the first one stays";
  EXPECT_EQ(records.find({5}), nullptr);
  EXPECT_EQ(records.find({1000}), nullptr);
  EXPECT_EQ(reasons_in(records, {{3}, {7}}), (Reasons{{4, "4"}, {6, "6"}}));
  int visits = 0;
  records.visit(all_offsets, [&](Offset, const DeathRecord&) { return ++visits < 3; });
  EXPECT_EQ(visits, 3);
}

TEST(DeathRecords, ACopyOfManySharesTheirMemory) {
  DeathRecords records;
  for (std::uint64_t at = 0; at < DeathRecord::records_max; ++at) records.add({at}, record_with("x"));
  const std::size_t most = DeathRecord::records_max / DeathRecords::piece_records_max + 1;
  EXPECT_LE(records.pieces(), most) << "the pieces are full";
  const DeathRecords copy = records;
  records.remove({{5}, {6}});
  EXPECT_EQ(copy.find({4}), records.find({4})) << "a record is shared though its piece has changed";
  EXPECT_NE(copy.find({5}), nullptr);
  EXPECT_EQ(records.find({5}), nullptr);
}

TEST(DeathRecordsRandom, BehaveLikeAMapAndCopiesDoNotChange) {
  test::Random random;
  for (int round = 0; round < 20; ++round) {
    DeathRecords records;
    Reasons model;
    std::vector<std::pair<std::unique_ptr<DeathRecords>, Reasons>> copies;
    const std::uint64_t last = random.between(100, 3000);
    for (int step = 0; step < 400; ++step) {
      const std::uint64_t from = random.between(0, last);
      if (random.one_in(3)) {
        const OffsetRange range{{from}, {from + random.between(0, random.one_in(8) ? last : 60)}};
        const auto begin = model.lower_bound(range.begin.value);
        const auto end = model.lower_bound(range.end.value);
        ASSERT_EQ(records.remove(range), static_cast<std::size_t>(std::distance(begin, end)));
        model.erase(begin, end);
      } else {
        const std::uint64_t count = random.between(1, 40);
        const std::string reason(random.between(0, 9), 'r');
        for (std::uint64_t at = from; at < from + count; ++at) {
          records.add({at}, record_with(reason));
          model.emplace(at, reason);
        }
      }
      expect_same(records, model);
      if (random.one_in(50)) copies.emplace_back(std::make_unique<DeathRecords>(records), model);
      // A copy may be changed, too.
      if (!copies.empty() && random.one_in(20)) {
        auto& [copy, copied] = copies[random.between(0, copies.size() - 1)];
        copy->remove({{from}, {from + 5}});
        copied.erase(copied.lower_bound(from), copied.lower_bound(from + 5));
      }
      for (const auto& [copy, copied] : copies) expect_same(*copy, copied);
    }
  }
}

}  // namespace
}  // namespace lightq::broker
