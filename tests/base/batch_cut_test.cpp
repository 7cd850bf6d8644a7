/// Tests of batches that are cut out of other batches.
#include <lightq/base/batch_cut.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "support/batches.hpp"

namespace lightq {
namespace {

std::vector<std::byte> whole_batch(std::uint64_t producer_id) {
  BatchBuilder builder;
  for (const char* const payload : {"zero", "", "two", "three"}) builder.add(as_byte_view(payload));
  builder.add(as_byte_view(std::string(5000, 'x')));
  const auto batch = builder.finish({producer_id, 40, 3});
  stamp_batch(batch, Offset{1000}, Timestamp{123}, 42);
  return {batch.begin(), batch.end()};
}

/// Returns the records [first, first + count) of a batch behind a header of their own.
std::vector<std::byte> cut(const BatchView& whole, std::uint32_t first, std::uint32_t count) {
  const std::byte* begin = whole.bytes().data() + batch_layout::header_bytes;
  for (std::uint32_t i = 0; i < first; ++i) begin += record_bytes(load_little_endian<std::uint32_t>(begin));
  const std::byte* end = begin;
  for (std::uint32_t i = 0; i < count; ++i) end += record_bytes(load_little_endian<std::uint32_t>(end));
  std::vector<std::byte> made(batch_layout::header_bytes);
  write_cut_header(BatchHeaderSpace(made.data(), batch_layout::header_bytes), whole, first, count,
                   {begin, end});
  made.insert(made.end(), begin, end);
  return made;
}

void expect_anonymous(const BatchView& batch) {
  EXPECT_EQ(batch.producer_id(), 0U);
  EXPECT_EQ(batch.producer_epoch(), 0U);
  EXPECT_EQ(batch.first_sequence(), 0U);
  EXPECT_EQ(batch.segment_epoch(), 0U)
      << "who knows it could store a message that holds a batch of the segment";
}

/// Returns the whole batch behind a header that does not name its producer.
std::vector<std::byte> anonymous(std::vector<std::byte> batch) {
  std::array<std::byte, batch_layout::header_bytes> header;
  write_anonymous_header(header, BatchView::trusted(batch.data()));
  std::copy(header.begin(), header.end(), batch.begin());
  return batch;
}

TEST(BatchCut, EveryPartOfABatchIsASoundBatch) {
  const auto bytes = whole_batch(7);
  const auto whole = BatchView::trusted(bytes.data());
  const auto payloads = test::payloads_of(whole);
  for (std::uint32_t first = 0; first < whole.record_count(); ++first) {
    for (std::uint32_t count = 1; first + count <= whole.record_count(); ++count) {
      const auto made = cut(whole, first, count);
      ASSERT_EQ(BatchView::check(made), std::nullopt) << first << " " << count;
      const auto part = BatchView::trusted(made.data());
      EXPECT_EQ(part.total_bytes(), made.size());
      EXPECT_EQ(part.base_offset(), Offset{1000 + first});
      EXPECT_EQ(part.end_offset(), Offset{1000 + first + count});
      EXPECT_EQ(part.append_time(), Timestamp{123});
      expect_anonymous(part);
      EXPECT_EQ(test::payloads_of(part),
                std::vector<std::string>(payloads.begin() + first, payloads.begin() + first + count));
    }
  }
}

TEST(BatchCut, ACutOfAllRecordsIsTheWholeBatchWithoutItsProducer) {
  for (const std::uint64_t producer_id : {0U, 7U}) {
    const auto bytes = whole_batch(producer_id);
    EXPECT_EQ(cut(BatchView::trusted(bytes.data()), 0, 5), anonymous(bytes));
  }
}

// The lengths have few and many 1 bits, and lie below and above the size that the checksum code shifts zero
// by zero.
TEST(BatchCut, AWholeBatchOfAnyLengthIsSoundWithoutItsProducer) {
  for (const std::size_t bytes :
       {0U, 1U, 7U, 100U, 507U, 508U, 509U, 1020U, 1535U, 4095U, 65'531U, 1'000'003U}) {
    BatchBuilder builder;
    builder.add(as_byte_view(std::string(bytes, 'x')));
    const auto made = builder.finish({UINT64_MAX - bytes, UINT64_MAX - 5, 65'535});
    stamp_batch(made, Offset{1000}, Timestamp{123}, 42);
    const auto shown = anonymous({made.begin(), made.end()});
    ASSERT_EQ(BatchView::check(shown), std::nullopt) << bytes;
    const auto batch = BatchView::trusted(shown.data());
    expect_anonymous(batch);
    EXPECT_EQ(batch.base_offset(), Offset{1000});
    EXPECT_EQ(batch.append_time(), Timestamp{123});
  }
}

TEST(BatchCut, ADamagedBatchStaysDamagedWithoutItsProducer) {
  auto bytes = whole_batch(7);
  bytes[batch_layout::header_bytes + 5] ^= std::byte{4};
  EXPECT_EQ(BatchView::check(anonymous(bytes)), BatchFault::bad_body_crc);
}

}  // namespace
}  // namespace lightq
