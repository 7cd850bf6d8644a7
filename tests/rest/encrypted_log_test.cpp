/// Tests logs that encrypt their batches on disk.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>

#include <lightq/base/compression.hpp>
#include <lightq/queue.hpp>

#include "delivery/batches/unpacked.hpp"
#include "log/memory/write_behind_log.hpp"
#include "log/storage/posix_storage.hpp"
#include "support/batch_mask.hpp"
#include "support/log_fixture.hpp"
#include "support/storage_keys.hpp"
#include "support/temp_dir.hpp"

namespace lightq::log {
namespace {

using test::read_everything;
using test::ReadMessage;

class EncryptedLogTest : public test::LogFixture {
 protected:
  EncryptedLogTest() {
    options.segment_bytes = limits::segment_bytes_min;
    use(keys.get());
  }
  void use(const BatchCiphers* ciphers) { options.ciphers = ciphers; }
  Error refused() {
    log.reset();
    const auto opened = SegmentLog::open(options, storage, *pool, now);
    EXPECT_FALSE(opened.ok());
    return opened ? Error{} : opened.error();
  }
  std::map<std::string, std::vector<std::byte>> files() {
    std::map<std::string, std::vector<std::byte>> found;
    for (const auto& path : storage.paths()) found[path] = storage.bytes_of(path);
    return found;
  }
  bool lies_on_the_disk(std::string_view text) {
    for (const auto& [path, bytes] : files()) {
      if (as_text(bytes).find(text) != std::string_view::npos) return true;
    }
    return false;
  }
  std::uint64_t key_id_of(std::uint64_t first_offset) {
    SegmentPage page{};
    std::copy_n(storage.bytes_of(segment_path(first_offset)).begin(), page.size(), page.begin());
    const auto header = decode_segment_header(page).header;
    EXPECT_TRUE(header);
    return header ? header->key_id : 0;
  }
  /// Corrects the checksums of the batch at this position of a file, even if the batch has been changed.
  void mend(const std::string& path, std::size_t position) {
    test::mend_batch_in(storage.bytes_of(path), position);
  }

  std::unique_ptr<rest::StorageKeys> keys = test::storage_keys({1});
  std::unique_ptr<rest::StorageKeys> others = test::storage_keys({2});
  std::unique_ptr<rest::StorageKeys> both = test::storage_keys({2, 1});
};

TEST_F(EncryptedLogTest, NoPlainTextOfMessagesIsOnDisk) {
  open();
  ASSERT_EQ(append({"planted words", "more"}), AppendOutcome::appended);
  ASSERT_EQ(append({std::string(70'000, 'x') + "planted words"}), AppendOutcome::appended);
  ASSERT_TRUE(log->close().ok());
  EXPECT_FALSE(lies_on_the_disk("planted"));
  EXPECT_FALSE(lies_on_the_disk("xxxx"));
  const auto read = read_everything(*log);
  ASSERT_EQ(read.size(), 3U);
  EXPECT_EQ(read[0], (ReadMessage{{0}, "planted words"}));
  open();
  EXPECT_EQ(read_everything(*log), read);
  EXPECT_TRUE(log->recovery().clean() && log->recovery().closed);
  options.ciphers = nullptr;
  options.directory = "/topics/2";
  open();
  append({"planted words"});
  EXPECT_TRUE(lies_on_the_disk("planted")) << "the search finds what is there";
}

TEST_F(EncryptedLogTest, TheBatchThatWasAppendedStaysClear) {
  open();
  auto batch = test::make_batch({"m"});
  const std::size_t bytes = batch.size();
  ASSERT_EQ(log->append(batch, now).outcome, AppendOutcome::appended);
  EXPECT_EQ(BatchView::check(batch), std::nullopt);
  EXPECT_EQ(test::payloads_of(BatchView::trusted(batch.data())), std::vector<std::string>{"m"});
  EXPECT_EQ(log->stored_bytes(), bytes + encrypted_layout::more_bytes);
  ReadPosition place;
  const ReadResult read = log->read(place);
  ASSERT_EQ(read.outcome, ReadOutcome::batch);
  EXPECT_TRUE(std::ranges::equal(read.batch.bytes(), batch)) << "byte for byte, stamps too";
}

TEST_F(EncryptedLogTest, RecoversFromAKillWithATornTail) {
  open();
  for (int i = 0; i < 10; ++i) ASSERT_EQ(append({"message " + std::to_string(i)}), AppendOutcome::appended);
  const auto all = read_everything(*log);
  const std::uint64_t end = segment_header_bytes + log->stored_bytes();
  storage.bytes_of(segment_path(0))[end - 1] ^= std::byte{1};  // the last batch is incomplete
  open();
  EXPECT_EQ(log->recovery().damaged.size(), 0U);
  EXPECT_NE(log->recovery().bytes_cut, 0U);
  EXPECT_EQ(read_everything(*log), (std::vector<ReadMessage>(all.begin(), all.end() - 1)));
  ASSERT_EQ(append({"in its place"}), AppendOutcome::appended);
  EXPECT_EQ(read_everything(*log).back(), (ReadMessage{{9}, "in its place"}));
}

TEST_F(EncryptedLogTest, WithoutTheRightKeyNothingIsChanged) {
  open();
  while (log->segments().size() < 3) ASSERT_EQ(append({std::string(20'000, 'm')}), AppendOutcome::appended);
  append({"last"});
  const std::uint64_t key_id = keys->of(log->incarnation())->key_id();
  const auto all = read_everything(*log);
  const auto& last = log->segments().active();
  storage.bytes_of(last.path())[last.end_position() - 1] ^= std::byte{1};  // recovery would cut this batch
  log.reset();
  const auto before = files();
  for (const BatchCiphers* ciphers :
       {static_cast<const BatchCiphers*>(others.get()), static_cast<const BatchCiphers*>(nullptr)}) {
    use(ciphers);
    const Error error = refused();
    EXPECT_EQ(error.code, ErrorCode::not_supported);
    EXPECT_NE(error.message.find(segment_path(0)), std::string::npos) << error.message;
    EXPECT_NE(error.message.find("key id " + key_id_text(key_id)), std::string::npos) << error.message;
    EXPECT_TRUE(files() == before);
  }
  use(keys.get());
  open();
  EXPECT_EQ(read_everything(*log), (std::vector<ReadMessage>(all.begin(), all.end() - 1)));
}

TEST_F(EncryptedLogTest, ANewKeyBeginsASegmentAndOldOnesAreStillRead) {
  open();
  append({"old"});
  ASSERT_TRUE(log->close().ok());
  use(both.get());
  open();
  append({"new"});
  const std::vector<ReadMessage> all = {{{0}, "old"}, {{1}, "new"}};
  EXPECT_EQ(read_everything(*log), all);
  EXPECT_NE(key_id_of(0), key_id_of(1));
  open();
  EXPECT_EQ(read_everything(*log), all);
  use(others.get());
  EXPECT_NE(refused().message.find(segment_path(0)), std::string::npos);
  use(keys.get());
  EXPECT_NE(refused().message.find(segment_path(1)), std::string::npos);
  use(both.get());
  open();
  log->drop_before({1});
  ASSERT_TRUE(log->flush().ok());
  while (work()) {
  }
  use(others.get());
  open();
  EXPECT_EQ(read_everything(*log), (std::vector<ReadMessage>{{{1}, "new"}}))
      << "the old key is not needed any more";
}

TEST_F(EncryptedLogTest, RecycledFilesAreEncryptedLikeTheirLog) {
  options.flush_interval_ms = 1;
  use(keys.get());
  open();
  while (log->segments().size() < 4) append({std::string(20'000, 'm')});
  const std::uint64_t key_before = log->segments().active().header().key_id;
  log->drop_before(log->next_offset());
  now.us += 10'000;
  work();
  const std::size_t in_pool = pool->files();
  ASSERT_GT(in_pool, 0U);
  use(both.get());
  open();
  for (int i = 0; i < 20 && pool->files() == in_pool; ++i) append({std::string(20'000, 'n')});
  EXPECT_LT(pool->files(), in_pool);
  const std::uint64_t key_now = log->segments().active().header().key_id;
  EXPECT_NE(key_now, 0U);
  EXPECT_NE(key_now, key_before);
  const auto all = read_everything(*log);
  EXPECT_EQ(all.size(), distance(log->first_offset(), log->next_offset()));
  open();
  EXPECT_EQ(read_everything(*log), all);
  EXPECT_EQ(log->segments().active().header().key_id, key_now);
}

TEST_F(EncryptedLogTest, ForgedBatchesAreSkippedAsDamage) {
  open();
  for (const char* text : {"one", "two", "six"}) append({text});
  const std::string path = segment_path(0);
  const std::size_t bytes = log->stored_bytes() / 3;
  log.reset();
  auto& file = storage.bytes_of(path);
  // Exchanges the records of the first two batches. All checksums are right.
  const auto first = file.begin() + segment_header_bytes + batch_layout::header_bytes;
  const auto records = static_cast<std::ptrdiff_t>(bytes - batch_layout::header_bytes);
  std::swap_ranges(first, first + records, first + static_cast<std::ptrdiff_t>(bytes));
  mend(path, segment_header_bytes);
  mend(path, segment_header_bytes + bytes);
  open();
  EXPECT_TRUE(log->recovery().clean()) << log->recovery().text();
  ReadPosition place;
  const ReadResult read = log->read(place);
  EXPECT_EQ(read.outcome, ReadOutcome::damaged);
  EXPECT_EQ(read.next, Offset{1});
  EXPECT_EQ(log->last_error().code, ErrorCode::corrupt);
  EXPECT_NE(log->last_error().message.find(path + ": the batch at position 4096 "), std::string::npos)
      << log->last_error().message;
  EXPECT_EQ(read_everything(*log), (std::vector<ReadMessage>{{{2}, "six"}}));
}

TEST_F(EncryptedLogTest, AnUnencryptedForgedBatchIsNotDelivered) {
  open();
  append({std::string(48, 'x')});  // encrypted, it is as long as the batch that replaces it
  append({"mine"});
  const std::string path = segment_path(0);
  auto planted = test::make_batch({std::string(96, 'y')});
  const SegmentHeader& header = log->segments().at(0).header();
  stamp_batch(planted, {0}, now, header.epoch, header.batch_mask);
  log.reset();
  std::ranges::copy(planted, storage.bytes_of(path).begin() + segment_header_bytes);
  open();
  EXPECT_TRUE(log->recovery().clean()) << log->recovery().text();
  EXPECT_EQ(read_everything(*log), (std::vector<ReadMessage>{{{1}, "mine"}}));
}

TEST_F(EncryptedLogTest, ReadingAHeaderDecryptsNothing) {
  open();
  ASSERT_EQ(append({"one", "two"}), AppendOutcome::appended);
  ReadPosition place{{1}};
  const ReadResult looked = log->read_header(place);
  ASSERT_EQ(looked.outcome, ReadOutcome::batch);
  EXPECT_TRUE(looked.batch.is_encrypted());
  EXPECT_EQ(looked.batch.base_offset(), Offset{0});
  EXPECT_EQ(looked.batch.append_time(), now);
  EXPECT_FALSE(log->read(place).batch.is_encrypted());
}

TEST_F(EncryptedLogTest, ReadersAtManyPositionsReadAllMessages) {
  constexpr std::uint64_t batches = 32;
  DecryptedMemory memory(limits::MiB);
  options.decrypted = &memory;
  open();
  std::vector<std::string> expected;
  for (std::uint64_t i = 0; i < batches; ++i) {
    // Some payloads are so large that the memory keeps few of them.
    expected.push_back(std::string(i % 5 == 0 ? limits::MiB / 3 : 100, 'x') + std::to_string(i));
    ASSERT_EQ(append({expected.back()}), AppendOutcome::appended);
  }
  std::vector<ReadPosition> places;
  for (std::uint64_t i = 0; i < 12; ++i) places.push_back({{i * 2}});
  for (int round = 0; round < 6; ++round) {
    for (ReadPosition& place : places) {
      const ReadResult read = log->read(place);
      ASSERT_EQ(read.outcome, ReadOutcome::batch);
      ASSERT_EQ(test::payloads_of(read.batch).at(0), expected[place.offset.value]);
      place.offset = read.batch.end_offset();
    }
    log->maintain(now);  // records that the log was used
    now.us += 20'000'000;
    log->maintain(now);  // an idle log releases its memory
  }
  log.reset();  // the log must end before the memory does
}

TEST_F(EncryptedLogTest, RoomThatWasMadeIsEnough) {
  options.capacity_bytes = 100'000;
  open();
  int made = 0;
  for (int i = 0; i < 500; ++i) {
    auto batch = test::make_batch({std::string(static_cast<std::size_t>(i) * 7 % 3000, 'm')});
    auto result = log->append(batch, now);
    if (result.outcome == AppendOutcome::full) {
      ASSERT_TRUE(log->make_room(batch.size(), log->next_offset()));
      result = log->append(batch, now);
      ++made;
    }
    ASSERT_EQ(result.outcome, AppendOutcome::appended) << i;
    ASSERT_LE(log->stored_bytes(), options.capacity_bytes);
  }
  EXPECT_GT(made, 1);
}

TEST_F(EncryptedLogTest, WriteBehindLogsEncryptTheirFiles) {
  open();
  WriteBehindLog behind({.ring = {.capacity_bytes = limits::MiB}}, std::move(log));
  auto large = test::make_batch({std::string(2 * limits::MiB, 'p')});  // goes directly to the segments
  auto batch = test::make_batch({"planted"});
  ASSERT_EQ(behind.append(batch, now).outcome, AppendOutcome::appended);
  ASSERT_EQ(behind.append(large, now).outcome, AppendOutcome::appended);
  auto after = test::make_batch({"planted too"});
  ASSERT_EQ(behind.append(after, now).outcome, AppendOutcome::appended);
  ASSERT_TRUE(behind.flush().ok());
  EXPECT_FALSE(lies_on_the_disk("planted") || lies_on_the_disk("pppp"));
  const auto all = read_everything(behind);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[2].payload, "planted too");
  open();
  EXPECT_EQ(read_everything(*log), all);
}

TEST_F(EncryptedLogTest, MappedLogsRefuseEncryption) {
  options.mapped_writes = true;
  EXPECT_EQ(refused().code, ErrorCode::invalid_argument);
}

// Decrypted batches reuse memory addresses of earlier ones. An unpacked batch is identified by its address,
// so it must not be taken for an earlier batch.
TEST_F(EncryptedLogTest, CompressedBatchesAreUnpackedEachForItself) {
  open();
  constexpr int batches = 60;
  const auto text_of = [](int number) { return std::string(2000, 'a') + std::to_string(1000 + number); };
  for (int i = 0; i < batches; ++i) {
    BatchBuilder builder;
    builder.add(as_byte_view(text_of(i)));
    Compressor compressor;
    builder.replace_records(Codec::lz4, compressor.compress(Codec::lz4, builder.records()).value());
    ASSERT_EQ(log->append(builder.finish(), now).outcome, AppendOutcome::appended);
  }
  for (int i = 0; i < 2000; ++i) {
    const int wanted = i * 7 % batches;
    ReadPosition place{{static_cast<std::uint64_t>(wanted)}};
    const ReadResult read = log->read(place);
    ASSERT_EQ(read.outcome, ReadOutcome::batch);
    const auto plain = broker::unpacked(read.batch).value_or_throw();
    ASSERT_TRUE(plain);
    ASSERT_EQ(test::payloads_of(*plain), std::vector<std::string>{text_of(wanted)});
  }
}

TEST(EncryptedQueueTest, AQueueDoesNotOpenAnEncryptedTopicsLog) {
  const test::TempDir directory;
  const auto keys = test::storage_keys({1});
  {
    PosixStorage storage;
    SegmentPool pool({directory / "pool"}, storage);
    auto log = SegmentLog::open({.directory = directory / "log", .ciphers = keys.get()}, storage, pool, {})
                   .value_or_throw();
    auto batch = test::make_batch({"m"});
    ASSERT_EQ(log->append(batch, {1}).outcome, AppendOutcome::appended);
    log->close().value_or_throw();
  }
  const auto queue = Queue::open(directory / "log");
  ASSERT_FALSE(queue.ok());
  EXPECT_EQ(queue.error().code, ErrorCode::not_supported);
  const auto view = QueueView::open(directory / "log");
  ASSERT_FALSE(view.ok());
  EXPECT_EQ(view.error().code, ErrorCode::not_supported);
  EXPECT_NE(view.error().message.find("key id"), std::string::npos) << view.error().message;
}

TEST_F(EncryptedLogTest, ReadsAKeptSegment) {
  std::ifstream kept(std::string(LIGHTQ_GOLDEN_DIR) + "/segment-encrypted.v2", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(kept), {}};
  ASSERT_GT(text.size(), segment_header_bytes);
  ASSERT_TRUE(storage.open(segment_path(42), OpenMode::create).ok());
  const ByteView bytes = as_byte_view(text);
  storage.bytes_of(segment_path(42)).assign(bytes.begin(), bytes.end());
  const auto of_that = test::storage_keys({0x5A});
  use(of_that.get());
  open();
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_TRUE(log->recovery().clean()) << log->recovery().text();
  const std::vector<ReadMessage> expected = {
      {{42}, "first"}, {{43}, ""}, {{44}, std::string("\0\xFF\n", 3)}, {{45}, std::string(300, 'x')}};
  EXPECT_EQ(read_everything(*log, {42}), expected);
  append({"more"});
  EXPECT_EQ(read_everything(*log).back(), (ReadMessage{{46}, "more"}));
}

}  // namespace
}  // namespace lightq::log
