/// Tests the memory in which logs keep decrypted batches: how often batches are decrypted, and how much
/// memory all logs use together.
#include "log/segment/decrypted_memory.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "support/log_fixture.hpp"
#include "support/storage_keys.hpp"

namespace lightq::log {
namespace {

/// Real ciphers that count decryptions.
class CountingCiphers final : public BatchCiphers {
 public:
  [[nodiscard]] std::unique_ptr<BatchCipher> of(std::uint64_t incarnation) const override {
    return std::make_unique<Cipher>(keys_->of(incarnation), decrypted);
  }
  mutable std::atomic<std::uint64_t> decrypted = 0;

 private:
  class Cipher final : public BatchCipher {
   public:
    Cipher(std::unique_ptr<BatchCipher> real, std::atomic<std::uint64_t>& count)
        : real_(std::move(real)), count_(count) {}
    [[nodiscard]] std::uint64_t key_id() const override { return real_->key_id(); }
    [[nodiscard]] bool knows(std::uint64_t key_id) const override { return real_->knows(key_id); }
    void encrypt(const BatchView& batch, std::span<std::byte> to) override { real_->encrypt(batch, to); }
    bool decrypt(const BatchView& batch, std::uint64_t key_id, std::span<std::byte> to) override {
      ++count_;
      return real_->decrypt(batch, key_id, to);
    }

   private:
    std::unique_ptr<BatchCipher> real_;
    std::atomic<std::uint64_t>& count_;
  };
  std::unique_ptr<rest::StorageKeys> keys_ = test::storage_keys({1});
};

constexpr std::size_t payload_bytes = 64 * limits::KiB;

class DecryptedMemoryTest : public test::LogFixture {
 protected:
  static std::string text_of(std::uint64_t number) {
    std::string text = std::to_string(number) + "|";
    text.resize(payload_bytes, '.');
    return text;
  }
  /// Returns a log of large batches with one message each.
  std::unique_ptr<SegmentLog> filled(const std::string& where, std::uint64_t batches,
                                     DecryptedMemory& memory) {
    SegmentLogOptions there = options;
    there.directory = where;
    there.ciphers = &ciphers;
    there.decrypted = &memory;
    auto made = SegmentLog::open(there, storage, *pool, now).value_or_throw();
    for (std::uint64_t i = 0; i < batches; ++i) {
      auto batch = test::make_batch({text_of(i)});
      EXPECT_EQ(made->append(batch, now).outcome, AppendOutcome::appended);
    }
    return made;
  }
  static void read_one(SegmentLog& from, ReadPosition& place) {
    const std::uint64_t number = place.offset.value;
    const ReadResult read = from.read(place);
    ASSERT_EQ(read.outcome, ReadOutcome::batch);
    ASSERT_EQ(test::payloads_of(read.batch), std::vector<std::string>{text_of(number)});
    place.offset = read.batch.end_offset();
  }
  CountingCiphers ciphers;
};

TEST_F(DecryptedMemoryTest, ManyReadersCostOneDecryptionOfEachBatch) {
  constexpr std::uint64_t batches = 40;
  constexpr std::size_t readers = 16;
  for (const std::uint64_t stride : {std::uint64_t{1}, std::uint64_t{10}, batches}) {
    DecryptedMemory memory;
    const auto read = filled("/topics/" + std::to_string(stride), batches, memory);
    ciphers.decrypted = 0;
    std::vector<ReadPosition> places(readers);
    for (std::uint64_t at = 0; at < batches; at += stride) {
      for (ReadPosition& place : places) {
        for (std::uint64_t i = 0; i < stride; ++i) read_one(*read, place);
      }
    }
    EXPECT_EQ(ciphers.decrypted, batches) << "in strides of " << stride;
  }
}

TEST_F(DecryptedMemoryTest, AllLogsTogetherKeepNoMoreThanItsBoundAndTheLeastRecentlyReadGoesFirst) {
  constexpr std::size_t bytes_max = 5 * payload_bytes;  // space for four batches and their overhead
  DecryptedMemory memory(bytes_max);
  const auto first = filled("/topics/1", 6, memory);
  const auto second = filled("/topics/2", 6, memory);
  ciphers.decrypted = 0;
  const auto read = [&](SegmentLog& from, std::uint64_t offset) {
    ReadPosition place{{offset}};
    read_one(from, place);
    EXPECT_LE(memory.bytes(), bytes_max);
    return ciphers.decrypted.exchange(0);
  };
  for (const std::uint64_t offset : {0U, 1U, 2U}) EXPECT_EQ(read(*first, offset), 1U);
  EXPECT_EQ(read(*second, 0), 1U);
  EXPECT_EQ(read(*first, 0), 0U);
  EXPECT_EQ(read(*second, 1), 1U) << "in the place of the first log's second batch";
  EXPECT_EQ(read(*first, 0), 0U);
  EXPECT_EQ(read(*first, 2), 0U);
  EXPECT_EQ(read(*first, 1), 1U);
  EXPECT_EQ(read(*second, 0), 1U);
}

TEST_F(DecryptedMemoryTest, DeliveredBatchesStayValidAfterTheirReplacement) {
  DecryptedMemory memory(2 * payload_bytes);
  const auto first = filled("/topics/1", 2, memory);
  const auto second = filled("/topics/2", 10, memory);
  ReadPosition place;
  const ReadResult given = first->read(place);
  ReadPosition others;
  for (int i = 0; i < 10; ++i) read_one(*second, others);
  EXPECT_EQ(test::payloads_of(given.batch), std::vector<std::string>{text_of(0)});
  ciphers.decrypted = 0;
  ReadPosition again;
  read_one(*first, again);
  EXPECT_EQ(ciphers.decrypted, 0U) << "it is there";
  first->maintain(now);
  again = {};
  read_one(*first, again);
  EXPECT_EQ(ciphers.decrypted, 1U) << "until nobody can be reading in it";
}

TEST_F(DecryptedMemoryTest, ABatchLargerThanItsBoundIsKeptAlone) {
  DecryptedMemory memory(payload_bytes / 2);
  const auto large = filled("/topics/1", 2, memory);
  ciphers.decrypted = 0;
  for (int reader = 0; reader < 16; ++reader) {
    ReadPosition place;
    read_one(*large, place);
  }
  EXPECT_EQ(ciphers.decrypted, 1U);
  EXPECT_EQ(memory.bytes(), 0U);
}

TEST_F(DecryptedMemoryTest, AnIdleOrEndedLogReleasesItsPart) {
  DecryptedMemory memory;
  auto idle = filled("/topics/1", 4, memory);
  auto ended = filled("/topics/2", 4, memory);
  for (SegmentLog* read : {idle.get(), ended.get()}) {
    ReadPosition place;
    for (int i = 0; i < 4; ++i) read_one(*read, place);
  }
  const std::size_t all = memory.bytes();
  EXPECT_GE(all, 8 * payload_bytes);
  ended.reset();
  EXPECT_EQ(memory.bytes(), all / 2);
  idle->maintain(now);  // records that the log was used
  now.us += 20'000'000;
  idle->maintain(now);
  EXPECT_EQ(memory.bytes(), 0U);
}

TEST_F(DecryptedMemoryTest, LogsOfManyThreadsShareIt) {
  DecryptedMemory memory(6 * payload_bytes);
  std::vector<std::unique_ptr<SegmentLog>> logs;
  for (int i = 0; i < 3; ++i) logs.push_back(filled("/topics/" + std::to_string(i + 1), 8, memory));
  for (const auto& each : logs) {  // so that no file is opened while the readers run
    ReadPosition place;
    read_one(*each, place);
  }
  std::vector<std::jthread> threads;
  for (const auto& each : logs) {
    threads.emplace_back([&each] {
      for (int round = 0; round < 20; ++round) {
        ReadPosition place;
        for (int i = 0; i < 8; ++i) read_one(*each, place);
      }
    });
  }
  threads.clear();
  EXPECT_LE(memory.bytes(), 6 * payload_bytes);
}

}  // namespace
}  // namespace lightq::log
