/// Compares a durable log with a plain model under random operations, failing calls, kills and power cuts.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "support/log_fixture.hpp"
#include "support/random.hpp"
#include "support/storage_keys.hpp"

namespace lightq::log {
namespace {

using test::FaultyStorage;
using test::read_everything;

constexpr int seeds = 16;

class CrashTest : public test::LogFixture, public testing::WithParamInterface<int> {
 protected:
  CrashTest() { options.segment_bytes = limits::segment_bytes_min; }

  void append_some() {
    std::vector<std::string> payloads(random.between(1, 4));
    for (auto& payload : payloads) {
      // A payload begins and ends with its own random mark. Without it, bytes of the file's earlier life
      // could complete an unfinished append, and the result would equal the message itself.
      const std::string mark = std::to_string(random.below(1'000'000'000));
      payload = mark + std::string(random.below(random.one_in(50) ? 80'000 : 4000), 'r') + mark;
    }
    auto batch = test::make_batch(payloads);
    const Offset before = log->next_offset();
    const AppendResult result = log->append(batch, now);
    if (result.outcome == AppendOutcome::appended) {
      ASSERT_EQ(result.base, before);
      for (const auto& payload : payloads) model[next.value++] = payload;
    }
    ASSERT_EQ(log->next_offset(), next)
        << log->recovery().text() << "; nothing changes by an append that did not happen";
  }

  std::map<std::uint64_t, std::string> messages_now() {
    std::map<std::uint64_t, std::string> found;
    for (const auto& message : read_everything(*log)) found[message.offset.value] = message.payload;
    return found;
  }

  /// Describes the first difference between two sets of messages.
  [[nodiscard]] std::string describe(const std::map<std::uint64_t, std::string>& found,
                                     const std::map<std::uint64_t, std::string>& expected) const {
    std::string text =
        std::to_string(found.size()) + " found, " + std::to_string(expected.size()) + " expected";
    for (const auto& [offset, payload] : expected) {
      if (!found.contains(offset)) return text + ", missing " + std::to_string(offset);
    }
    for (const auto& [offset, payload] : found) {
      if (!expected.contains(offset)) return text + ", too many: " + std::to_string(offset);
      if (expected.at(offset) != payload) return text + ", other payload at " + std::to_string(offset);
    }
    return text;
  }

  /// Checks that the log has all messages of [first, next) and nothing else, except messages that a power cut
  /// removed. The model keeps dropped messages, because a crash can make them visible again until their file
  /// is retired.
  void check() {
    const std::map<std::uint64_t, std::string> expected(model.lower_bound(log->first_offset().value),
                                                        model.end());
    const auto found = messages_now();
    ASSERT_TRUE(found == expected) << describe(found, expected) << "; " << log->recovery().text();
    ASSERT_EQ(log->next_offset(), next) << log->recovery().text();
  }

  /// Checks the log after a power cut: every durable message that was not dropped is there, and every other
  /// message found is correct. Removes lost messages from the model.
  void check_after_power_cut(Offset first, Offset durable) {
    const auto found = messages_now();
    ASSERT_LE(durable, log->next_offset()) << log->recovery().text();
    ASSERT_LE(log->next_offset(), next);
    for (const auto& [offset, payload] : found) {
      ASSERT_TRUE(model.contains(offset)) << offset;
      ASSERT_TRUE(model[offset] == payload) << offset;
    }
    for (const auto& [offset, payload] : model) {
      const bool promised = first.value <= offset && offset < durable.value;
      ASSERT_TRUE(!promised || found.contains(offset))
          << offset << " was durable; " << log->recovery().text();
    }
    std::erase_if(model, [&](const auto& entry) {
      return log->first_offset().value <= entry.first && !found.contains(entry.first);
    });
    next = log->next_offset();
  }

  void power_cut() {
    const Offset durable = log->durable_offset();
    const Offset first = log->first_offset();
    log.reset();
    pool.reset();
    const std::uint64_t share = random.below(3);
    storage.power_cut([&] { return share == 0 || (share == 1 && random.one_in(2)); });
    pool = std::make_unique<SegmentPool>(SegmentPoolOptions{"/pool", 4}, storage);
    open();
    ASSERT_FALSE(HasFatalFailure());
    check_after_power_cut(first, durable);
  }

  void arm_fault() {
    storage.on_call = [this, left = random.below(20)](FaultyStorage::Call call, const std::string&) mutable {
      const bool write = call == FaultyStorage::Call::write;
      if (call == FaultyStorage::Call::read || call == FaultyStorage::Call::map)
        return FaultyStorage::Fault{};
      if (left-- != 0) return FaultyStorage::Fault{};
      left = random.below(20);
      if (write && random.one_in(2)) return FaultyStorage::Fault{0, 1 + random.below(100)};
      return FaultyStorage::Fault{random.one_in(2) ? EIO : ENOSPC, 0};
    };
  }

  void step(bool faults) {
    now.us += static_cast<std::int64_t>(random.below(50'000));
    if (faults && random.one_in(10)) arm_fault();
    if (random.one_in(30)) log->request_flush();
    switch (random.below(40)) {
      case 0:
        storage.on_call = nullptr;
        open();
        break;
      case 1:
        storage.on_call = nullptr;
        power_cut();
        break;
      case 2: static_cast<void>(random.one_in(2) ? log->flush() : log->close()); break;
      case 3: log->make_room(random.below(60'000), {log->first_offset().value + random.below(60)}); break;
      case 4: log->maintain(now); break;
      case 5: {  // reads at a random offset
        ReadPosition place{{random.below(next.value + 1)}};
        const ReadResult result = log->read(place);
        if (result.outcome == ReadOutcome::batch) {
          const std::uint32_t mask = BatchView::mask_of(result.batch.bytes());
          ASSERT_TRUE(mask == 0 || std::ranges::any_of(log->segments().all(), [&](const auto& segment) {
                        return segment->header().batch_mask == mask;
                      }));
          ASSERT_EQ(BatchView::check_header(result.batch.bytes(), mask), std::nullopt);
          ASSERT_EQ(result.batch.check_body(), std::nullopt);
        }
        break;
      }
      case 6:
      case 7:
      case 8: work(); break;
      default: append_some();
    }
    if (HasFatalFailure()) return;
    if (random.one_in(20)) {
      storage.on_call = nullptr;
      check();
    }
  }

  test::Random random{GetParam()};
  std::map<std::uint64_t, std::string> model;
  Offset next;
};

TEST_P(CrashTest, MatchesAModelMapOverKillsAndPowerCuts) {
  log.reset();
  pool = std::make_unique<SegmentPool>(SegmentPoolOptions{"/pool", 4}, storage);
  options.capacity_bytes = 400'000;
  open();
  for (int i = 0; i < 4000; ++i) {
    step(false);
    ASSERT_FALSE(HasFatalFailure()) << "step " << i;
  }
}

TEST_P(CrashTest, MatchesAModelMapWhileCallsFail) {
  log.reset();
  pool = std::make_unique<SegmentPool>(SegmentPoolOptions{"/pool", 4}, storage);
  options.retention_bytes = 300'000;
  open();
  for (int i = 0; i < 4000; ++i) {
    step(true);
    ASSERT_FALSE(HasFatalFailure()) << "step " << i;
  }
}

TEST_P(CrashTest, MatchesAModelMapWithEncryption) {
  const auto keys = test::storage_keys({1});
  const auto both = test::storage_keys({2, 1});
  log.reset();
  pool = std::make_unique<SegmentPool>(SegmentPoolOptions{"/pool", 4}, storage);
  options.retention_bytes = 300'000;
  options.ciphers = keys.get();
  open();
  for (int i = 0; i < 4000; ++i) {
    if (i == 2000) options.ciphers = both.get();  // takes effect at the next opening
    step(i % 1000 < 500);
    ASSERT_FALSE(HasFatalFailure()) << "step " << i;
  }
  EXPECT_NE(log->segments().active().header().key_id, 0U);
  log.reset();
}

INSTANTIATE_TEST_SUITE_P(Seeds, CrashTest, testing::Range(0, seeds));

}  // namespace
}  // namespace lightq::log
