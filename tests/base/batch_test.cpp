/// Tests of building, stamping and checking batches.
#include <lightq/base/batch.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>

#include "support/batches.hpp"
#include "support/random.hpp"

namespace lightq {
namespace {

using test::payloads_of;

std::vector<std::byte> stamped(std::initializer_list<std::string_view> payloads, Offset base = {7}) {
  BatchBuilder builder;
  for (const auto payload : payloads) builder.add(as_byte_view(payload));
  const auto batch = builder.finish();
  stamp_batch(batch, base, Timestamp{123}, 42);
  return {batch.begin(), batch.end()};
}

TEST(Batch, ReturnsThePackedMessages) {
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

TEST(Batch, CarriesItsProducersIdentityUnderTheBodysChecksum) {
  for (const std::size_t payload_bytes : {std::size_t{10}, std::size_t{5000}}) {
    BatchBuilder builder;
    builder.add(as_byte_view("first"));
    builder.add(as_byte_view(std::string(payload_bytes, 'p')));
    builder.add(as_byte_view("last"));
    builder.finish({1, 2, 3});
    const auto batch = builder.finish({0x1122334455667788, 0x99AABBCCDDEEFF00, 0x1234});
    stamp_batch(batch, Offset{0}, Timestamp{0}, 1);
    EXPECT_EQ(BatchView::check(batch), std::nullopt);
    EXPECT_EQ(load_little_endian<std::uint64_t>(batch.data() + batch_layout::producer_id),
              0x1122334455667788);
    EXPECT_EQ(load_little_endian<std::uint64_t>(batch.data() + batch_layout::first_sequence),
              0x99AABBCCDDEEFF00);
    EXPECT_EQ(load_little_endian<std::uint16_t>(batch.data() + batch_layout::producer_epoch), 0x1234);
  }
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
  for (const std::size_t at :
       {batch_layout::version, batch_layout::codec, batch_layout::flags, batch_layout::producer_epoch + 2}) {
    set(at, std::uint8_t{0x80});
    restamp();
    EXPECT_EQ(BatchView::check(bytes), BatchFault::bad_version) << "at " << at;
  }
  set(batch_layout::flags + 1, std::uint8_t{0x80});
  store_little_endian(bytes.data() + batch_layout::body_crc, batch_body_crc(bytes));
  restamp();
  EXPECT_EQ(BatchView::check(bytes), std::nullopt) << "an optional flag";
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

// The checksums are valid. An offset above the highest one would overflow where messages are counted from it.
TEST(Batch, RefusesOffsetsAboveTheHighest) {
  for (const std::uint64_t records : {1, 3}) {
    auto bytes = test::make_batch(std::vector<std::string>(records, "payload"));
    for (const std::uint64_t base : {std::uint64_t{limits::offset_max - records}, std::uint64_t{0}}) {
      stamp_batch(bytes, Offset{base}, Timestamp{0}, 1);
      EXPECT_EQ(BatchView::check(bytes), std::nullopt) << base;
    }
    for (const std::uint64_t base :
         {limits::offset_max - records + 1, limits::offset_max, UINT64_MAX - 3, UINT64_MAX - 1, UINT64_MAX}) {
      stamp_batch(bytes, Offset{base}, Timestamp{0}, 1);
      EXPECT_EQ(BatchView::check(bytes), BatchFault::bad_records) << base;
    }
  }
}

TEST(Batch, NamesItsProducer) {
  auto bytes = test::make_batch_of_producer(0x0123456789ABCDEF, 0xFEDC, 77, {"one", "two"});
  stamp_batch(bytes, Offset{5}, Timestamp{6}, 7);
  ASSERT_EQ(BatchView::check(bytes), std::nullopt);
  const auto batch = BatchView::trusted(bytes.data());
  EXPECT_EQ(batch.producer_id(), 0x0123456789ABCDEFU);
  EXPECT_EQ(batch.producer_epoch(), 0xFEDC);
  EXPECT_EQ(batch.first_sequence(), 77U);
  EXPECT_EQ(batch.end_offset(), Offset{7});
}

// The checksums are valid, so only the check of the record lengths can find the fault.
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

std::vector<std::byte> produced(std::initializer_list<std::string_view> payloads) {
  BatchBuilder builder;
  for (const auto payload : payloads) builder.add(as_byte_view(payload));
  const auto batch = builder.finish();
  store_little_endian(batch.data() + batch_layout::producer_id, std::uint64_t{77});
  store_little_endian(batch.data() + batch_layout::body_crc, batch_body_crc(batch));
  return {batch.begin(), batch.end()};
}

TEST(ProducedBatch, IsTakenAndItsLongestPayloadIsKnown) {
  const auto found = BatchView::check_produced(produced({"one", "", "three", "four"}));
  EXPECT_EQ(found.fault, std::nullopt);
  EXPECT_EQ(found.longest_message_bytes, 5U);
  EXPECT_EQ(BatchView::check_produced(produced({""})).fault, std::nullopt);
  EXPECT_EQ(BatchView::check_produced(produced({""})).longest_message_bytes, 0U);
  EXPECT_EQ(BatchView::check_produced(produced({std::string(100'000, 'x'), "y"})).longest_message_bytes,
            100'000U);
}

TEST(ProducedBatch, IsNotTakenWhenAnyBitIsFlipped) {
  const auto good = produced({"some payload", "and another"});
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    const auto fault = BatchView::check_produced(bad).fault;
    const std::size_t at = bit / 8;
    const bool stamped_field = (at >= batch_layout::base_offset && at < batch_layout::producer_id) ||
                               (at >= batch_layout::segment_epoch && at < batch_layout::body_crc) ||
                               (at >= batch_layout::header_crc && at < batch_layout::header_bytes);
    const auto expected = at < batch_layout::version ? BatchFault::bad_magic
                          : stamped_field            ? BatchFault::bad_stamp
                                                     : BatchFault::bad_body_crc;
    ASSERT_EQ(fault, expected) << "bit " << bit;
  }
}

TEST(ProducedBatch, IsNotTakenWhenCutOrContinued) {
  const auto good = produced({"some payload", "and another"});
  for (std::size_t size = 0; size < good.size(); ++size) {
    const auto expected =
        size < batch_layout::header_bytes ? BatchFault::short_header : BatchFault::bad_body_crc;
    ASSERT_EQ(BatchView::check_produced(ByteView(good).first(size)).fault, expected) << size;
  }
  auto longer = good;
  longer.push_back(std::byte{0});
  EXPECT_EQ(BatchView::check_produced(longer).fault, BatchFault::bad_body_crc);
  store_little_endian(longer.data() + batch_layout::body_crc, batch_body_crc(longer));
  EXPECT_EQ(BatchView::check_produced(longer).fault, BatchFault::bad_length);
}

// The checksum is valid: the faults are those that a producer makes itself.
TEST(ProducedBatch, NamesItsProducersMistake) {
  const auto fault_with = [](std::size_t at, auto value) {
    auto bytes = produced({"payload"});
    store_little_endian(bytes.data() + at, value);
    store_little_endian(bytes.data() + batch_layout::body_crc, batch_body_crc(bytes));
    return BatchView::check_produced(bytes).fault;
  };
  EXPECT_EQ(fault_with(batch_layout::producer_id, std::uint64_t{1}), std::nullopt);
  for (const std::size_t at : {batch_layout::version, batch_layout::codec, batch_layout::flags,
                               batch_layout::flags + 1, batch_layout::producer_epoch + 2})
    EXPECT_EQ(fault_with(at, std::uint8_t{0x80}), BatchFault::bad_version) << "at " << at;
  for (const std::uint32_t length : {0U, 64U, 74U, 76U, 0xFFFFFFFFU})
    EXPECT_EQ(fault_with(batch_layout::total_bytes, length), BatchFault::bad_length) << length;
  for (const std::uint32_t count : {0U, 2U, 65536U, 65537U, 0xFFFFFFFFU})
    EXPECT_EQ(fault_with(batch_layout::record_count, count), BatchFault::bad_records) << count;
  for (const std::uint32_t length : {0U, 6U, 8U, 0xFFFFFFFFU})
    EXPECT_EQ(fault_with(batch_layout::header_bytes, length), BatchFault::bad_records) << length;
  EXPECT_EQ(fault_with(batch_layout::append_time_us, std::int64_t{-1}), BatchFault::bad_stamp);
}

TEST(ProducedBatch, AsManyRecordsAsABatchMayHaveAreTakenAndNoMore) {
  BatchBuilder builder;
  for (std::size_t i = 0; i < limits::batch_records_max; ++i) builder.add({});
  auto finished = builder.finish();
  EXPECT_EQ(BatchView::check_produced(finished).fault, std::nullopt);
  std::vector<std::byte> more(finished.begin(), finished.end());
  more.resize(more.size() + record_bytes(0));
  store_little_endian(more.data() + batch_layout::total_bytes, static_cast<std::uint32_t>(more.size()));
  store_little_endian(more.data() + batch_layout::record_count,
                      static_cast<std::uint32_t>(limits::batch_records_max + 1));
  store_little_endian(more.data() + batch_layout::body_crc, batch_body_crc(more));
  EXPECT_EQ(BatchView::check_produced(more).fault, BatchFault::bad_records);
}

TEST(ProducedBatch, MessagesOfEqualLengthAreCheckedLikeOthers) {
  for (const auto& lengths : std::vector<std::vector<std::size_t>>{
           {3, 3, 3}, {0, 0, 0, 0}, {3, 3, 4}, {4, 3, 3}, {0, 0, 1, 1, 0}, {7, 7, 7, 2, 2, 7, 7}}) {
    BatchBuilder builder;
    for (const std::size_t length : lengths) builder.add(std::vector<std::byte>(length));
    const auto batch = builder.finish();
    EXPECT_EQ(BatchView::check_produced(batch).fault, std::nullopt);
    EXPECT_EQ(BatchView::check_produced(batch).longest_message_bytes,
              *std::max_element(lengths.begin(), lengths.end()));
    // One record more or fewer than the batch has.
    for (const int by : {-1, 1}) {
      std::vector<std::byte> bad(batch.begin(), batch.end());
      store_little_endian(bad.data() + batch_layout::record_count,
                          static_cast<std::uint32_t>(static_cast<int>(lengths.size()) + by));
      store_little_endian(bad.data() + batch_layout::body_crc, batch_body_crc(bad));
      EXPECT_EQ(BatchView::check_produced(bad).fault, BatchFault::bad_records);
    }
  }
}

// The records have lengths like those of random bytes, under a valid checksum.
TEST(ProducedBatch, LengthsThatLieAreCheckedWithoutReadingPastThem) {
  test::Random random;
  BatchBuilder builder;
  int sound = 0;
  for (int round = 0; round < 20'000; ++round) {
    builder.clear();
    for (std::uint64_t record = random.between(1, 5); record != 0; --record)
      builder.add(random.bytes(random.below(12)));
    const auto finished = builder.finish();
    std::vector<std::byte> bytes(finished.begin(), finished.end());
    const std::size_t at =
        batch_layout::header_bytes + random.below(bytes.size() - batch_layout::header_bytes - 3);
    store_little_endian(bytes.data() + at, static_cast<std::uint32_t>(random.below(16)));
    store_little_endian(bytes.data() + batch_layout::body_crc, batch_body_crc(bytes));
    const auto found = BatchView::check_produced(bytes);
    if (found.fault) {
      ASSERT_EQ(found.fault, BatchFault::bad_records);
      continue;
    }
    ++sound;
    std::size_t longest = 0;
    std::size_t size = batch_layout::header_bytes;
    for (auto record = BatchView::trusted(bytes.data()).records(); !record.done(); record.next()) {
      longest = std::max(longest, record.payload().size());
      size += record_bytes(record.payload().size());
    }
    ASSERT_EQ(found.longest_message_bytes, longest);
    ASSERT_EQ(size, bytes.size());
  }
  EXPECT_GT(sound, 100);
  EXPECT_LT(sound, 19'900);
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
  EXPECT_EQ(builder.message_bytes(), 0U);
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

TEST(BatchBuilder, AddsNothingIfTheWriterOfAMessageThrows) {
  BatchBuilder builder;
  const auto fail = [](std::span<std::byte> to) {
    std::fill(to.begin(), to.end(), std::byte{'x'});
    throw std::runtime_error("no more");
  };
  const auto write_b = [](std::span<std::byte> to) { to[0] = std::byte{'b'}; };
  EXPECT_THROW(builder.add_in_place(5, fail), std::runtime_error);
  EXPECT_TRUE(builder.empty());
  builder.add(as_byte_view("a"), {.key = "k"});
  EXPECT_THROW(builder.add_in_place(5, fail), std::runtime_error);
  EXPECT_THROW(builder.add_in_place(5, fail, {.key = "other"}), std::runtime_error);
  builder.add_in_place(1, write_b);
  builder.add_in_place(1, write_b, {.key = "l"});
  const auto bytes = builder.finish();
  stamp_batch(bytes, Offset{0}, Timestamp{0}, 0);
  ASSERT_EQ(BatchView::check(bytes), std::nullopt);
  EXPECT_EQ(payloads_of(BatchView::trusted(bytes.data())), (std::vector<std::string>{"a", "b", "b"}));
  EXPECT_EQ(builder.message_bytes(), bytes.size() - batch_layout::header_bytes - 3 * record_bytes(0));
}

TEST(BatchBuilder, SumsThePackedBytesAsAReaderDoes) {
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
