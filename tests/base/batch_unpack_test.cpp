/// Tests of batches with compressed records.
#include <lightq/base/batch_unpack.hpp>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/batches.hpp"
#include "support/random.hpp"

namespace lightq {
namespace {

using test::payloads_of;

std::vector<std::byte> packed(Codec codec, const std::vector<std::string>& payloads,
                              const Attributes& attributes = {}) {
  BatchBuilder builder;
  for (const auto& payload : payloads) builder.add(as_byte_view(payload), attributes);
  Compressor compressor;
  const auto records = compressor.compress(codec, builder.records());
  if (records) builder.replace_records(codec, *records);
  const auto batch = builder.finish({7, 1, 2});
  stamp_batch(batch, Offset{30}, Timestamp{4}, 9);
  return {batch.begin(), batch.end()};
}

/// Makes both checksums of the batch valid, for any content.
void sum_anew(std::vector<std::byte>& batch) {
  store_little_endian(batch.data() + batch_layout::body_crc, batch_body_crc(batch));
  store_little_endian(batch.data() + batch_layout::header_crc, batch_header_crc(batch.data()));
}

std::vector<std::string> words(std::size_t count) {
  std::vector<std::string> payloads;
  for (std::size_t i = 0; i < count; ++i)
    payloads.push_back("the same words with number " + std::to_string(i));
  return payloads;
}

class EachCodec : public testing::TestWithParam<Codec> {};
INSTANTIATE_TEST_SUITE_P(Batch, EachCodec, testing::Values(Codec::lz4, Codec::zstd),
                         [](const auto& test) { return std::string(to_word(test.param)); });

TEST_P(EachCodec, ReturnsThePackedMessages) {
  for (const std::size_t count : {3U, 100U, 60'000U}) {
    const auto payloads = words(count);
    const Header headers[] = {{"kind", "json"}};
    const auto batch = packed(GetParam(), payloads, {.key = "tea", .headers = headers});
    const BatchView view = BatchView::trusted(batch.data());
    ASSERT_EQ(BatchView::check(batch), std::nullopt);
    ASSERT_EQ(view.codec(), GetParam());
    BatchUnpacker unpacker;
    const auto plain = unpacker.unpack(view);
    ASSERT_TRUE(plain.has_value());
    EXPECT_FALSE(plain->is_compressed());
    EXPECT_EQ(payloads_of(*plain), payloads);
    EXPECT_EQ(plain->records().attributes().key(), "tea");
    EXPECT_EQ(plain->message_bytes(), view.message_bytes());
    EXPECT_EQ(plain->records_bytes(), view.records_bytes());
    EXPECT_EQ(plain->base_offset(), Offset{30});
    EXPECT_EQ(plain->append_time(), Timestamp{4});
    EXPECT_EQ(plain->first_sequence(), 1U);
    EXPECT_EQ(plain->producer_id(), 7U);
    EXPECT_EQ(plain->record_count(), count);
    EXPECT_LT(batch.size(), plain->total_bytes());
    EXPECT_EQ(unpacker.unpack(view)->bytes().data(), plain->bytes().data()) << "kept";
  }
}

TEST_P(EachCodec, LeavesIncompressibleBatchesUnchanged) {
  test::Random random(3);
  std::string noise(5000, ' ');
  for (char& c : noise) c = static_cast<char>(random.below(256));
  const auto batch = packed(GetParam(), {noise});
  EXPECT_FALSE(BatchView::trusted(batch.data()).is_compressed());
  EXPECT_EQ(payloads_of(BatchView::trusted(batch.data())), std::vector<std::string>{noise});
}

// The checksums are valid, as in batches that an attacker builds.
TEST_P(EachCodec, AFlippedBitIsDetectedOrHarmless) {
  const auto good = packed(GetParam(), words(20));
  BatchUnpacker unpacker;
  std::size_t refused = 0;
  for (std::size_t bit = 64 * 8; bit < good.size() * 8; ++bit) {
    auto bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    sum_anew(bad);
    const BatchView view = BatchView::trusted(bad.data());
    if (view.check_body()) {
      ++refused;
      continue;
    }
    const auto plain = unpacker.unpack(view);
    unpacker.forget();
    if (!plain) ++refused;
    if (plain) {
      ASSERT_EQ(payloads_of(*plain).size(), 20U);
    }
  }
  EXPECT_GT(refused, good.size());
}

TEST_P(EachCodec, LengthsThatLieAreRefusedBeforeMemoryIsMade) {
  const auto good = packed(GetParam(), words(20));
  const std::uint64_t right = BatchView::trusted(good.data()).records_bytes();
  BatchUnpacker unpacker;
  for (const std::uint64_t said :
       {std::uint64_t{0}, right - 1, right + 1, limits::unpacked_bytes_free + limits::unpacked_ratio_max * 60,
        limits::compressed_batch_bytes_max, limits::compressed_batch_bytes_max + 1,
        std::uint64_t{UINT32_MAX}}) {
    auto bad = good;
    store_little_endian(bad.data() + batch_layout::header_bytes, static_cast<std::uint32_t>(said));
    sum_anew(bad);
    const BatchView view = BatchView::trusted(bad.data());
    const bool possible = said >= 80 && may_be_packed_in(said, view.total_bytes() - compressed_records_at);
    EXPECT_EQ(view.check_body().has_value(), !possible) << said;
    if (possible) {
      EXPECT_EQ(unpacker.unpack(view), std::nullopt) << said;
    }
  }
}

TEST_P(EachCodec, WithoutABodyIsBad) {
  for (const std::size_t body : {0U, 1U, 4U}) {
    std::vector<std::byte> batch(batch_layout::header_bytes + body);
    store_little_endian(batch.data(), batch_layout::magic_value);
    store_little_endian(batch.data() + batch_layout::version, batch_layout::version_value);
    store_little_endian(batch.data() + batch_layout::codec, static_cast<std::uint8_t>(GetParam()));
    store_little_endian(batch.data() + batch_layout::total_bytes, static_cast<std::uint32_t>(batch.size()));
    store_little_endian(batch.data() + batch_layout::record_count, std::uint32_t{1});
    sum_anew(batch);
    EXPECT_EQ(BatchView::check(batch), BatchFault::bad_records) << body;
  }
}

TEST(Batch, ReportsAnUnknownCodecAsAnUnknownVersion) {
  auto batch = packed(Codec::lz4, words(20));
  for (unsigned codec = 3; codec < 256; ++codec) {
    store_little_endian(batch.data() + batch_layout::codec, static_cast<std::uint8_t>(codec));
    sum_anew(batch);
    EXPECT_EQ(BatchView::check(batch), BatchFault::bad_version) << codec;
  }
}

TEST(BatchUnpacker, DoesNotConfuseAnotherBatchAtTheSameAddress) {
  BatchUnpacker unpacker;
  auto batch = packed(Codec::lz4, words(20));
  ASSERT_TRUE(unpacker.unpack(BatchView::trusted(batch.data())));
  auto other = packed(Codec::lz4, std::vector<std::string>(20, "quite another text, twenty times"));
  ASSERT_LE(other.size(), batch.size());
  std::ranges::copy(other, batch.begin());
  const auto plain = unpacker.unpack(BatchView::trusted(batch.data()));
  ASSERT_TRUE(plain);
  EXPECT_EQ(payloads_of(*plain).front(), "quite another text, twenty times");
}

TEST(BatchUnpacker, LeavesUncompressedBatchesUnchanged) {
  BatchUnpacker unpacker;
  auto batch = packed(Codec::none, {"one", "two"});
  const auto plain = unpacker.unpack(BatchView::trusted(batch.data()));
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->bytes().data(), batch.data());
}

TEST(Batch, ReadsACompressedBatchWithAttributesLikeAnyOther) {
  std::ifstream file(std::string(LIGHTQ_GOLDEN_DIR) + "/batches.v1", std::ios::binary);
  const std::string kept{std::istreambuf_iterator<char>(file), {}};
  ByteView left = as_byte_view(kept);
  std::vector<std::string> messages;
  std::vector<Codec> codecs;
  while (!left.empty()) {
    ASSERT_EQ(BatchView::check(left), std::nullopt);
    const BatchView batch = BatchView::trusted(left.data());
    codecs.push_back(batch.codec());
    BatchUnpacker unpacker;
    const auto plain = unpacker.unpack(batch);
    ASSERT_TRUE(plain);
    for (auto record = plain->records(); !record.done(); record.next()) {
      std::string text = std::string(record.attributes().key()) + "|";
      for (const Header header : record.attributes().headers())
        text += std::string(header.name) + "=" + std::string(header.value) + ",";
      text += "|" + std::to_string(record.attributes().time().us) + "|";
      messages.push_back(text + std::string(as_text(record.payload())));
    }
    left = left.subspan(batch.total_bytes());
  }
  EXPECT_EQ(codecs, (std::vector<Codec>{Codec::none, Codec::lz4, Codec::zstd}));
  EXPECT_EQ(messages, (std::vector<std::string>{"tea|kind=json,empty=,|1763750000000001|one", "||0|",
                                                "coffee||0|three", "||0|four", "||0|five", "tea||0|six"}));
}

TEST(Codec, HasAWordAndABit) {
  for (const Codec codec : {Codec::none, Codec::lz4, Codec::zstd}) {
    EXPECT_EQ(codec_of(to_word(codec)), codec);
    EXPECT_TRUE(CodecSet::known().has(codec));
    EXPECT_EQ(CodecSet(0).has(codec), codec == Codec::none);
  }
  EXPECT_EQ(codec_of("gzip"), std::nullopt);
  EXPECT_EQ(CodecSet::known().bits(), 6U) << "docs/session.md, hello";
}

}  // namespace
}  // namespace lightq
