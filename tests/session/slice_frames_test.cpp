/// Tests of deliver frames that are made of parts of batches, and of the client's frame limit.
#include "session/slice_frames.hpp"

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <lightq/base/compression.hpp>

#include "session/fake_session.hpp"
#include "support/batches.hpp"
#include "support/no_memory.hpp"

namespace lightq::broker {
namespace {

using Payloads = std::vector<std::string>;
using test::FakeSession;

class SliceFramesTest : public testing::Test {
 protected:
  static constexpr std::uint64_t base = 100;
  static constexpr std::uint64_t sequence = 4000;
  /// The bytes of a body without its records: the head of the delivery and the batch's header.
  static constexpr std::size_t around = session::deliver_head_bytes + batch_layout::header_bytes;

  void make(const Payloads& payloads, std::uint64_t producer = 7) {
    all = payloads;
    bytes_ = producer == 0 ? test::make_batch(payloads)
                           : test::make_batch_of_producer(producer, 2, sequence, payloads);
    stamp_batch(bytes_, Offset{base}, Timestamp{5}, 9);
  }
  /// Returns the records [begin, end) of the batch as a slice.
  [[nodiscard]] BatchSlice slice(std::uint32_t begin, std::uint32_t end) const {
    std::size_t at = batch_layout::header_bytes, bytes = 0;
    for (std::uint32_t i = 0; i < end; ++i) (i < begin ? at : bytes) += record_bytes(all[i].size());
    return {BatchView::trusted(bytes_.data()), begin, end - begin, ByteView(bytes_).subspan(at, bytes)};
  }
  [[nodiscard]] BatchSlice whole() const { return slice(0, static_cast<std::uint32_t>(all.size())); }
  std::uint32_t deliver(const BatchSlice& of) {
    return deliver_slice(port, of, {.channel = 3, .request = 0, .delivery = 2, .hand_out = 6, .lost = 11});
  }
  /// Checks that the frames have exactly the records from `begin` on. `counts` are the records of each frame.
  /// Offsets and checksums must match in each frame.
  void expect_frames(std::uint32_t begin, const std::vector<std::uint32_t>& counts) {
    ASSERT_EQ(port.frames.size(), counts.size());
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const auto& frame = port.frames[i];
      EXPECT_LE(frame.header.body_bytes, port.takes_bytes);
      EXPECT_EQ(frame.header.channel, 3U);
      EXPECT_EQ(frame.header.request, 0U);
      EXPECT_EQ(frame.head(), (session::DeliverHead{2, 6, i == 0 ? 11U : 0U}));
      EXPECT_EQ(frame.is_part(), counts[i] != all.size());
      const BatchView batch = frame.batch();
      EXPECT_EQ(batch.base_offset(), Offset{base + begin});
      EXPECT_EQ(batch.append_time(), Timestamp{5});
      EXPECT_EQ(BatchView::check(batch.bytes()), std::nullopt);
      expect_anonymous(batch);
      EXPECT_EQ(test::payloads_of(batch), Payloads(all.begin() + begin, all.begin() + begin + counts[i]));
      begin += counts[i];
    }
  }

  static void expect_anonymous(const BatchView& batch) {
    EXPECT_EQ(batch.producer_id(), 0U) << "it could be opened by whoever knows it";
    EXPECT_EQ(batch.producer_epoch(), 0U);
    EXPECT_EQ(batch.first_sequence(), 0U);
    EXPECT_EQ(batch.segment_epoch(), 0U) << "a producer could store a batch that looks like the broker's";
  }

  FakeSession port;
  Payloads all;

 private:
  std::vector<std::byte> bytes_;
};

TEST_F(SliceFramesTest, AWholeBatchIsSentUnchangedWithoutItsProducer) {
  make({"one", "", "three"});
  EXPECT_EQ(deliver(whole()), 3U);
  expect_frames(0, {3});
  const auto sent = whole().batch.bytes();
  const auto& body = port.frames.at(0).body;
  EXPECT_TRUE(std::equal(sent.begin() + batch_layout::header_bytes, sent.end(),
                         body.begin() + static_cast<std::ptrdiff_t>(around), body.end()));
}

TEST_F(SliceFramesTest, EachPartHasItsOwnHeader) {
  for (const std::uint64_t producer : {0U, 7U}) {
    make({"one", "", "three", "four"}, producer);
    for (std::uint32_t begin = 0; begin < 4; ++begin) {
      for (std::uint32_t end = begin + 1; end <= 4; ++end) {
        port.frames.clear();
        EXPECT_EQ(deliver(slice(begin, end)), end - begin);
        expect_frames(begin, {end - begin});
      }
    }
  }
}

TEST_F(SliceFramesTest, BatchesThatFitTheClientsFramesExactlyAreNotCut) {
  make({std::string(100, 'a'), std::string(100, 'b'), std::string(100, 'c')});
  const auto body = [&](std::size_t records) {
    return static_cast<std::uint32_t>(around + records * record_bytes(100));
  };
  port.takes_bytes = body(3);
  EXPECT_EQ(deliver(whole()), 3U);
  expect_frames(0, {3});
  for (const std::uint32_t takes : {body(3) - 1, body(2)}) {
    port.frames.clear();
    port.takes_bytes = takes;
    EXPECT_EQ(deliver(whole()), 3U);
    expect_frames(0, {2, 1});
  }
  port.frames.clear();
  port.takes_bytes = body(2) - 1;
  EXPECT_EQ(deliver(slice(1, 3)), 2U);
  expect_frames(1, {1, 1});
}

TEST_F(SliceFramesTest, ARecordThatFitsNoFrameEndsItBeforeThat) {
  make({"a", "b", std::string(1000, 'c'), "d"});
  port.takes_bytes = static_cast<std::uint32_t>(around + record_bytes(1000));
  EXPECT_EQ(deliver(whole()), 4U);
  expect_frames(0, {2, 1, 1});
  port.frames.clear();
  --port.takes_bytes;
  EXPECT_EQ(deliver(whole()), 2U);
  expect_frames(0, {2});
  port.frames.clear();
  EXPECT_EQ(deliver(slice(2, 4)), 0U) << "nothing behind it either";
  EXPECT_TRUE(port.frames.empty());
}

class CompressedSliceFrames : public SliceFramesTest, public testing::WithParamInterface<Codec> {
 protected:
  static constexpr std::uint32_t count = 200;
  CompressedSliceFrames() {
    BatchBuilder builder;
    for (std::uint32_t i = 0; i < count; ++i) {
      all.push_back("what all of them say, and the number " + std::to_string(i));
      builder.add(as_byte_view(all.back()));
    }
    Compressor compressor;
    builder.replace_records(GetParam(), compressor.compress(GetParam(), builder.records()).value());
    const auto batch = builder.finish({7, sequence, 2});
    stamp_batch(batch, Offset{base}, Timestamp{5}, 9);
    packed.assign(batch.begin(), batch.end());
  }
  [[nodiscard]] BatchSlice as_stored() const { return {BatchView::trusted(packed.data()), 0, count, {}}; }
  /// Checks that the frames are plain parts that together have all messages.
  void expect_parts() {
    std::uint32_t at = 0;
    for (const auto& frame : port.frames) {
      EXPECT_TRUE(frame.is_part());
      EXPECT_LE(frame.header.body_bytes, port.takes_bytes);
      const BatchView batch = frame.batch();
      ASSERT_EQ(BatchView::check(batch.bytes()), std::nullopt);
      EXPECT_EQ(batch.base_offset(), Offset{base + at});
      expect_anonymous(batch);
      const auto payloads = test::payloads_of(batch);
      ASSERT_LE(at + payloads.size(), count);
      EXPECT_EQ(payloads, Payloads(all.begin() + at, all.begin() + at + static_cast<int>(payloads.size())));
      at += static_cast<std::uint32_t>(payloads.size());
    }
    EXPECT_EQ(at, count);
  }

  std::vector<std::byte> packed;
};
INSTANTIATE_TEST_SUITE_P(, CompressedSliceFrames, testing::Values(Codec::lz4, Codec::zstd),
                         [](const auto& test) { return std::string(to_word(test.param)); });

TEST_P(CompressedSliceFrames, GoAsTheyLie) {
  EXPECT_EQ(deliver(as_stored()), count);
  ASSERT_EQ(port.frames.size(), 1U);
  EXPECT_FALSE(port.frames[0].is_part());
  expect_anonymous(port.frames[0].batch());
  EXPECT_EQ(BatchView::check(port.frames[0].batch().bytes()), std::nullopt);
  const auto& body = port.frames[0].body;
  EXPECT_TRUE(std::equal(packed.begin() + batch_layout::header_bytes, packed.end(),
                         body.begin() + static_cast<std::ptrdiff_t>(around), body.end()));
}

TEST_P(CompressedSliceFrames, AreSentUncompressedIfTheClientsFramesAreShorter) {
  port.takes_bytes = static_cast<std::uint32_t>(session::deliver_head_bytes + packed.size());
  EXPECT_EQ(deliver(as_stored()), count);
  ASSERT_EQ(port.frames.size(), 1U) << "fits exactly";
  port.frames.clear();
  --port.takes_bytes;
  EXPECT_EQ(deliver(as_stored()), count);
  EXPECT_GT(port.frames.size(), 1U);
  expect_parts();
}

TEST_F(SliceFramesTest, WithoutMemoryToUnpackTheSessionEnds) {
  if (!test::NoMemory::is_possible) GTEST_SKIP() << "sanitizers need address space without end";
  BatchBuilder builder;
  const std::string payload(200'000, 'a');
  builder.add(as_byte_view(payload));
  Compressor compressor;
  builder.replace_records(Codec::lz4, compressor.compress(Codec::lz4, builder.records()).value());
  const auto batch = builder.finish({7, sequence, 2});
  stamp_batch(batch, Offset{base}, Timestamp{5}, 9);
  port.takes_bytes = 200;
  std::jthread([&] {  // a new thread has no buffer for unpacking yet
    const test::NoMemory none;
    EXPECT_EQ(deliver({BatchView::trusted(batch.data()), 0, 1, {}}), 1U) << "it is not too long";
  })
      .join();
  EXPECT_TRUE(port.starved);
  EXPECT_TRUE(port.frames.empty());
}

}  // namespace
}  // namespace lightq::broker
