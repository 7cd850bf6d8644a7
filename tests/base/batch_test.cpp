/// Making, stamping and checking batches.
#include <lightq/base/batch.hpp>

#include <gtest/gtest.h>

#include <string>

#include "support/random.hpp"

namespace lightq {
namespace {

std::vector<std::byte> stamped(std::initializer_list<std::string_view> payloads, Offset base = {7}) {
  BatchBuilder builder;
  for (const auto payload : payloads) builder.add(as_byte_view(payload));
  const auto batch = builder.finish();
  stamp_batch(batch, base, Timestamp{123}, 42);
  return {batch.begin(), batch.end()};
}

std::vector<std::string> payloads_of(const BatchView& batch) {
  std::vector<std::string> payloads;
  for (auto record = batch.records(); !record.done(); record.next())
    payloads.emplace_back(as_text(record.payload()));
  return payloads;
}

TEST(Batch, GivesBackWhatWasPacked) {
  const auto bytes = stamped({"one", "", "three"});
  ASSERT_EQ(BatchView::check(bytes), std::nullopt);
  const auto batch = BatchView::trusted(bytes.data());
  EXPECT_EQ(payloads_of(batch), (std::vector<std::string>{"one", "", "three"}));
  EXPECT_EQ(batch.base_offset(), Offset{7});
  EXPECT_EQ(batch.end_offset(), Offset{10});
  EXPECT_EQ(batch.append_time(), Timestamp{123});
  EXPECT_EQ(batch.segment_epoch(), 42U);
  EXPECT_EQ(batch.total_bytes(), batch_layout::header_bytes + 3 * 4 + 8);
}

TEST(Batch, FailsItsCheckWhenAnyBitIsFlipped) {
  const auto good = stamped({"some payload", "and another"});
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    ASSERT_NE(BatchView::check(bad), std::nullopt) << "bit " << bit;
  }
}

TEST(Batch, FailsItsCheckWhenCutAnywhere) {
  const auto good = stamped({"some payload", "and another"});
  for (std::size_t size = 0; size < good.size(); ++size) {
    const auto expected =
        size < batch_layout::header_bytes ? BatchFault::short_header : BatchFault::bad_length;
    ASSERT_EQ(BatchView::check(ByteView(good).first(size)), expected) << size;
  }
}

TEST(Batch, NamesTheFaultThatItFinds) {
  auto bytes = stamped({"payload"});
  const auto restamp = [&] { stamp_batch(bytes, Offset{0}, Timestamp{0}, 1); };
  const auto set = [&](std::size_t at, auto value) {
    bytes = stamped({"payload"});
    store_little_endian(bytes.data() + at, value);
  };
  set(batch_layout::magic, std::uint32_t{1});
  EXPECT_EQ(BatchView::check(bytes), BatchFault::bad_magic);
  set(batch_layout::base_offset, std::uint64_t{1});
  EXPECT_EQ(BatchView::check(bytes), BatchFault::bad_header_crc);
  for (const std::size_t at : {batch_layout::version, batch_layout::codec, batch_layout::flags,
                               batch_layout::flags + 1, batch_layout::producer_epoch + 2}) {
    set(at, std::uint8_t{0x80});
    restamp();
    EXPECT_EQ(BatchView::check(bytes), BatchFault::bad_version) << "at " << at;
  }
  set(batch_layout::total_bytes, std::uint32_t{63});
  restamp();
  EXPECT_EQ(BatchView::check(bytes), BatchFault::bad_length);
  set(batch_layout::record_count, std::uint32_t{0});
  restamp();
  EXPECT_EQ(BatchView::check(bytes), BatchFault::bad_records);
  set(batch_layout::producer_id, std::uint64_t{9});
  restamp();
  EXPECT_EQ(BatchView::check(bytes), BatchFault::bad_body_crc);
}

// The checksums hold here: only the walk over the records can notice.
TEST(Batch, RefusesRecordsThatDoNotAddUp) {
  for (const std::uint32_t length : {0U, 6U, 8U, 0xFFFFFFFFU}) {
    auto bytes = stamped({"payload"});
    store_little_endian(bytes.data() + batch_layout::header_bytes, length);
    store_little_endian(bytes.data() + batch_layout::body_crc, batch_body_crc(bytes));
    stamp_batch(bytes, Offset{0}, Timestamp{0}, 1);
    EXPECT_EQ(BatchView::check(bytes), BatchFault::bad_records) << length;
  }
  for (const std::uint32_t count : {2U, 3U, 65536U}) {
    auto bytes = stamped({"payload"});
    store_little_endian(bytes.data() + batch_layout::record_count, count);
    store_little_endian(bytes.data() + batch_layout::body_crc, batch_body_crc(bytes));
    stamp_batch(bytes, Offset{0}, Timestamp{0}, 1);
    EXPECT_EQ(BatchView::check(bytes), BatchFault::bad_records) << count;
  }
}

TEST(Batch, ChecksRandomBytesWithoutReadingPastThem) {
  test::Random random;
  for (int round = 0; round < 20'000; ++round) {
    auto bytes = random.bytes(random.below(200));
    if (bytes.size() >= batch_layout::header_bytes && random.one_in(2)) {
      store_little_endian(bytes.data(), batch_layout::magic_value);
      stamp_batch(bytes, Offset{0}, Timestamp{0}, 1);
    }
    ASSERT_NE(BatchView::check(bytes), std::nullopt);
  }
}

TEST(BatchBuilder, AllocatesNothingBeforeItsFirstRecord) {
  BatchBuilder builder;
  EXPECT_EQ(builder.capacity_bytes(), 0U);
  EXPECT_TRUE(builder.empty());
}

TEST(BatchBuilder, KeepsItsMemoryOverClearButNotThatOfAHugeMessage) {
  BatchBuilder builder;
  builder.add(std::vector<std::byte>(100'000));
  const std::size_t ordinary = builder.capacity_bytes();
  builder.clear();
  EXPECT_EQ(builder.capacity_bytes(), ordinary);
  builder.add(std::vector<std::byte>(5 * limits::MiB));
  EXPECT_GT(builder.capacity_bytes(), BatchBuilder::keep_bytes_max);
  builder.clear();
  EXPECT_EQ(builder.capacity_bytes(), 0U);
  EXPECT_EQ(builder.payload_bytes(), 0U);
}

TEST(BatchBuilder, CanBeFinishedAgainAfterMoreRecords) {
  BatchBuilder builder;
  builder.add(as_byte_view("a"));
  static_cast<void>(builder.finish());
  std::memcpy(builder.add_uninitialized(1), "b", 1);
  const auto bytes = builder.finish();
  stamp_batch(bytes, Offset{0}, Timestamp{0}, 0);
  ASSERT_EQ(BatchView::check(bytes), std::nullopt);
  EXPECT_EQ(payloads_of(BatchView::trusted(bytes.data())), (std::vector<std::string>{"a", "b"}));
}

TEST(BatchBuilder, SumsWhatItPacksAsAReaderWould) {
  test::Random random;
  BatchBuilder builder;
  for (int round = 0; round < 200; ++round) {
    builder.clear();
    const std::uint64_t records = random.between(1, 400);
    for (std::uint64_t i = 0; i < records; ++i)
      builder.add(random.bytes(random.below(random.one_in(50) ? 9000 : 200)));
    for (int again = 0; again < 2; ++again) {
      ASSERT_EQ(BatchView::check_header(builder.finish()), BatchFault::bad_header_crc) << "not stamped yet";
      auto batch = builder.finish();
      stamp_batch(batch, Offset{7}, Timestamp{1}, 3);
      ASSERT_EQ(std::nullopt, BatchView::check(batch));
    }
    builder.add(as_byte_view("one more"));
    auto batch = builder.finish();
    stamp_batch(batch, Offset{7}, Timestamp{1}, 3);
    ASSERT_EQ(std::nullopt, BatchView::check(batch));
  }
}

}  // namespace
}  // namespace lightq
