/// Batches that are cut out of others.
#include <lightq/base/batch_cut.hpp>

#include <gtest/gtest.h>

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

/// Records [first, first + count) behind a header of their own.
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
      EXPECT_EQ(part.producer_id(), 7U);
      EXPECT_EQ(part.producer_epoch(), 3U);
      EXPECT_EQ(part.first_sequence(), 40U + first);
      EXPECT_EQ(test::payloads_of(part),
                std::vector<std::string>(payloads.begin() + first, payloads.begin() + first + count));
    }
  }
}

TEST(BatchCut, ACutOfEverythingIsTheSameBatch) {
  const auto bytes = whole_batch(7);
  EXPECT_EQ(cut(BatchView::trusted(bytes.data()), 0, 5), bytes);
}

TEST(BatchCut, WhatIsNobodysHasNoSequenceNumbers) {
  const auto bytes = whole_batch(0);
  const auto made = cut(BatchView::trusted(bytes.data()), 2, 2);
  ASSERT_EQ(BatchView::check(made), std::nullopt);
  EXPECT_EQ(BatchView::trusted(made.data()).first_sequence(), 40U) << "as it came";
}

}  // namespace
}  // namespace lightq
