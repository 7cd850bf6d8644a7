/// Tests cursor files of version 3: unfinished messages are loaded as they were saved, and impossible ones
/// are refused, byte by byte as in docs/log_format.md, "Cursor file".
#include <gtest/gtest.h>

#include <lightq/base/bytes.hpp>
#include <lightq/base/crc32c.hpp>

#include "log/offsets/offset_model.hpp"
#include "log/saved_state/cursor_file.hpp"
#include "log/saved_state/unfinished_code.hpp"
#include "support/faulty_storage.hpp"

namespace lightq::log {
namespace {

using test::FaultyStorage;
using test::set_of;

using Bytes = std::vector<unsigned>;

/// Returns a cursor file of version 3 with a valid checksum. Its only cursor has the name "a", the offset 4,
/// and these bytes for its unfinished messages.
std::vector<std::byte> file_with(const Bytes& unfinished, std::uint64_t offset = 4) {
  std::vector<std::byte> bytes(32 + 11);
  store_little_endian(bytes.data(), std::uint64_t{0x0A1A0A0D5255434C});
  store_little_endian(bytes.data() + 8, std::uint32_t{3});
  store_little_endian(bytes.data() + 16, std::uint64_t{100});
  store_little_endian(bytes.data() + 28, std::uint32_t{1});
  store_little_endian(bytes.data() + 32, offset);
  store_little_endian(bytes.data() + 40, std::uint16_t{1});
  bytes[42] = std::byte{'a'};
  for (const unsigned byte : unfinished) bytes.push_back(static_cast<std::byte>(byte));
  store_little_endian(bytes.data() + 24, static_cast<std::uint32_t>(bytes.size()));
  const ByteView view(bytes);
  store_little_endian(bytes.data() + 12, crc32c(view.subspan(16), crc32c(view.subspan(8, 4))));
  return bytes;
}

class UnfinishedFileTest : public testing::Test {
 protected:
  UnfinishedFileTest() { EXPECT_TRUE(file.write(CursorFile::encode(other)).ok()); }

  Result<std::vector<NamedCursor>> load() { return CursorFile(storage, "/topics/1").load(); }
  /// Loads a file with these bytes as the newer one of two. Returns the unfinished messages of its cursor, or
  /// nothing if it was refused.
  std::optional<Unfinished> loaded(const Bytes& unfinished, std::uint64_t offset = 4) {
    EXPECT_TRUE(storage.open("/topics/1/cursors.1", OpenMode::create).ok());
    storage.bytes_of("/topics/1/cursors.1") = file_with(unfinished, offset);
    const auto cursors = load();
    EXPECT_TRUE(cursors.ok());
    if (!cursors || *cursors == other) return std::nullopt;
    EXPECT_EQ(cursors->size(), 1U);
    EXPECT_EQ(cursors->front().name, "a");
    return cursors->front().unfinished;
  }

  const std::vector<NamedCursor> other = {{"other", {1}}};
  FaultyStorage storage;
  CursorFile file{storage, "/topics/1"};
};

TEST_F(UnfinishedFileTest, IsAsDocumented) {
  // The example of docs/log_format.md.
  const Bytes documented = {16, 3, 0x00, 0x04, 1, 2, 0x06, 1, 0xE8, 0x07, 2, 0x00};
  Unfinished unfinished{{20}, set_of({{{4}, {5}}, {{7}, {8}}})};
  unfinished.delivery_bits = {set_of({{{7}, {8}}})};
  unfinished.delayed = {{{1000}, set_of({{{4}, {5}}})}};
  EXPECT_EQ(loaded(documented), unfinished);
  ASSERT_TRUE(file.write(CursorFile::encode({{"a", {4}, unfinished}})).ok());
  const auto& written = storage.bytes_of("/topics/1/cursors.1");
  const auto expected = file_with(documented);
  EXPECT_TRUE(std::equal(written.begin() + 24, written.end(), expected.begin() + 24, expected.end()));
}

TEST(UnfinishedCode, TakesNoMoreMemoryThanItMay) {
  // Message 4 of 5, then 32 delivery bits of all messages: 36 bytes become 32 sets.
  std::vector<std::byte> code = {std::byte{1}, std::byte{2}, std::byte{0}, std::byte{32}};
  code.resize(code.size() + 32 + 1);
  for (const std::size_t most : {std::size_t{100}, 16 * sizeof(OffsetSet), std::size_t{100'000}}) {
    std::size_t memory_left = most;
    ByteView bytes = code;
    EXPECT_EQ(take_unfinished(bytes, {4}, DeadParts::none, memory_left).has_value(), most == 100'000) << most;
    EXPECT_LE(memory_left, most);
  }
  std::size_t memory_left = 100'000;
  ByteView bytes = code;
  ASSERT_TRUE(take_unfinished(bytes, {4}, DeadParts::none, memory_left).has_value());
  EXPECT_LE(memory_left, 100'000 - 32 * sizeof(OffsetSet));
}

TEST_F(UnfinishedFileTest, LoadsThePossible) {
  EXPECT_EQ(loaded({0, 1, 0, 0}), (Unfinished{{4}, {}})) << "a plain cursor";
  EXPECT_EQ(loaded({16, 1, 0, 0}), (Unfinished{{20}, {}})) << "all are processed";
  EXPECT_EQ(loaded({16, 3, 0x01, 14, 0, 0}), (Unfinished{{20}, set_of({{{4}, {20}}})}))
      << "none is processed";
  const auto all = loaded({16, 3, 0x00, 0x04, 3, 0, 1, 0, 1, 0x05, 0});
  ASSERT_TRUE(all.has_value());
  EXPECT_EQ(all->delivery_bits, (std::vector<OffsetSet>{all->messages, {}, all->messages}));
  ASSERT_EQ(all->delayed.size(), 1U);
  EXPECT_TRUE(all->delayed[0].second.shares_all_with(all->messages));
  // The highest possible `next`, and times before 1970.
  const Bytes longest = {0xFB, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01};
  Bytes bytes = longest;
  const Bytes early = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01};
  for (const unsigned byte : {3U, 0x00U, 0x04U, 0U, 2U}) bytes.push_back(byte);
  bytes.insert(bytes.end(), early.begin(), early.end());
  for (const unsigned byte : {2U, 0x00U, 2U, 2U, 0x06U}) bytes.push_back(byte);
  const auto furthest = loaded(bytes);
  ASSERT_TRUE(furthest.has_value());
  EXPECT_EQ(furthest->next, Offset{~std::uint64_t{0}});
  EXPECT_EQ(furthest->delayed[0].first, Timestamp{-1});
  EXPECT_EQ(furthest->delayed[1].first, Timestamp{1});
}

TEST_F(UnfinishedFileTest, RefusesTheImpossibleWithAValidChecksum) {
  const std::vector<std::pair<const char*, Bytes>> wrong = {
      {"no bytes", {}},
      {"the end is missing", {16, 3, 0x00, 0x04, 1, 2, 0x06, 1, 0xE8, 0x07, 2}},
      {"more bytes follow", {16, 3, 0x00, 0x04, 0, 0, 0}},
      {"next is beyond 2^64 - 1", {0xFC, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01, 1, 0, 0}},
      {"a number with leading zeros", {0x90, 0x00, 1, 0, 0}},
      {"a number of 65 bits", {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02, 1, 0, 0}},
      {"a message behind next", {3, 3, 0x00, 0x04, 0, 0}},
      {"a run that ends behind next", {16, 3, 0x01, 15, 0, 0}},
      {"runs that touch", {16, 3, 0x00, 0x00, 0, 0}},
      {"a gap with leading zeros", {16, 3, 0x80, 0x00, 0, 0}},
      {"messages that are all messages", {16, 0, 0, 0}},
      {"messages that are longer than the file", {16, 100, 0x00, 0, 0}},
      {"messages of an impossible length",
       {16, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01, 0x00, 0, 0}},
      {"33 delivery bits", {16, 3, 0x00, 0x04, 33, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                            0,  0, 0,    0,    0,  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
      {"a last delivery bit of no message", {16, 3, 0x00, 0x04, 1, 1, 0}},
      {"a delivery bit of another message", {16, 3, 0x00, 0x04, 1, 2, 0x02, 0}},
      {"a delivery bit of more messages", {16, 3, 0x00, 0x04, 1, 3, 0x01, 0x00, 0}},
      {"all messages, when there are none", {16, 1, 1, 0, 0}},
      {"65,537 times", {16, 3, 0x00, 0x04, 0, 0x81, 0x80, 0x04, 5, 2, 0x00}},
      {"a time of no message", {16, 3, 0x00, 0x04, 0, 1, 5, 1}},
      {"a time of another message", {16, 3, 0x00, 0x04, 0, 1, 5, 2, 0x02}},
      {"a time twice", {16, 3, 0x00, 0x04, 0, 2, 5, 2, 0x00, 0, 2, 0x06}},
      {"times that descend", {16,   3,    0x00, 0x04, 0,    2,    5,    2,    0x00, 0xFF, 0xFF,
                              0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01, 2,    0x06}},
      {"a message with two times", {16, 3, 0x00, 0x04, 0, 2, 5, 2, 0x00, 1, 2, 0x00}},
      {"all messages twice", {16, 3, 0x00, 0x04, 0, 2, 5, 0, 1, 0}},
  };
  for (const auto& [what, bytes] : wrong) EXPECT_FALSE(loaded(bytes).has_value()) << what;
}

// An offset near the highest number leaves no space for `next`.
TEST_F(UnfinishedFileTest, ReadsTheHighestOffsets) {
  EXPECT_EQ(loaded({1, 2, 0x00, 0, 0}, ~std::uint64_t{0} - 1),
            (Unfinished{{~std::uint64_t{0}}, set_of({{{~std::uint64_t{0} - 1}, {~std::uint64_t{0}}}})}));
  EXPECT_FALSE(loaded({2, 1, 0, 0}, ~std::uint64_t{0} - 1).has_value());
  EXPECT_EQ(loaded({0, 1, 0, 0}, ~std::uint64_t{0}), (Unfinished{{~std::uint64_t{0}}, {}}));
}

/// Returns unfinished messages with random holes, counts and times.
Unfinished drawn(std::mt19937_64& random, Offset offset, std::uint64_t messages, std::uint64_t hole_of) {
  Unfinished unfinished{offset + messages, {}};
  for (std::uint64_t i = 0; i < messages; ++i) {
    if (random() % hole_of == 0) continue;
    const OffsetRange one{offset + i, offset + (i + 1)};
    unfinished.messages.add(one);
    for (std::size_t bit = 0; bit < 3; ++bit) {
      if (random() % 4 != 0) continue;
      unfinished.delivery_bits.resize(std::max(unfinished.delivery_bits.size(), bit + 1));
      unfinished.delivery_bits[bit].add(one);
    }
    if (random() % 3 != 0) continue;
    const std::size_t due = random() % 8;
    unfinished.delayed.resize(std::max(unfinished.delayed.size(), due + 1));
    unfinished.delayed[due].second.add(one);
  }
  for (std::size_t i = 0; i < unfinished.delayed.size(); ++i)
    unfinished.delayed[i].first = {static_cast<std::int64_t>(i * i * 1'000'000 + i)};
  std::erase_if(unfinished.delayed, [](const auto& part) { return part.second.empty(); });
  return unfinished;
}

TEST_F(UnfinishedFileTest, LoadsSeveralCursorsAsTheyWereSaved) {
  std::mt19937_64 random(7);
  for (const std::uint64_t hole_of : {2, 3, 100, 1'000}) {
    std::vector<NamedCursor> cursors = {{"plain", {12}}};
    for (const std::uint64_t messages : {0, 1, 60, 20'000}) {
      const Offset offset{random() >> (random() % 40 + 1)};
      cursors.push_back(
          {"group:" + std::to_string(messages), offset, drawn(random, offset, messages, hole_of)});
    }
    cursors.push_back({"sub:1", {~std::uint64_t{0}}});
    ASSERT_TRUE(file.write(CursorFile::encode(cursors)).ok());
    const auto found = load();
    ASSERT_TRUE(found.ok()) << found.error().text();
    EXPECT_EQ(*found, cursors);
  }
}

TEST_F(UnfinishedFileTest, NoFlippedBitIsLoaded) {
  std::mt19937_64 random(8);
  const std::vector<NamedCursor> cursors = {{"a", {1'000}, drawn(random, {1'000}, 200, 3)}};
  ASSERT_TRUE(file.write(CursorFile::encode(cursors)).ok());
  auto& bytes = storage.bytes_of("/topics/1/cursors.1");
  ASSERT_EQ(*load(), cursors);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      bytes[at] ^= std::byte{1} << bit;
      const auto found = load();
      ASSERT_TRUE(found.ok()) << at << " " << bit;
      EXPECT_EQ(*found, other) << at << " " << bit;
      bytes[at] ^= std::byte{1} << bit;
    }
  }
}

// Any bytes behind a valid checksum are refused, or mean something that is written and loaded again.
TEST_F(UnfinishedFileTest, RandomBytesAreRefusedOrPossible) {
  std::mt19937_64 random(9);
  Unfinished small = drawn(random, {4}, 30, 3);
  ASSERT_TRUE(file.write(CursorFile::encode({{"a", {4}, small}})).ok());
  const auto written = storage.bytes_of("/topics/1/cursors.1");
  Bytes sound;
  for (std::size_t i = 43; i < written.size(); ++i) sound.push_back(std::to_integer<unsigned>(written[i]));
  int possible = 0;
  for (int i = 0; i < 20'000; ++i) {
    Bytes changed = sound;
    for (std::uint64_t changes = 1 + random() % 3; changes != 0; --changes)
      changed[random() % changed.size()] = static_cast<unsigned>(random() % (random() % 2 == 0 ? 256 : 6));
    const auto found = loaded(changed);
    if (!found) continue;
    ++possible;
    CursorFile again(storage, "/topics/2");
    ASSERT_TRUE(again.write(CursorFile::encode({{"a", {4}, *found}})).ok());
    const auto second = CursorFile(storage, "/topics/2").load();
    ASSERT_TRUE(second.ok()) << second.error().text();
    ASSERT_EQ(second->front(), (NamedCursor{"a", {4}, *found}));
  }
  EXPECT_GT(possible, 100);
}

TEST_F(UnfinishedFileTest, APlainStateIsWrittenInVersion1) {
  const std::vector<NamedCursor> plain = {{"a", {4}}, {"b", {9}, {}}};
  ASSERT_TRUE(file.write(CursorFile::encode(plain)).ok());
  EXPECT_EQ(storage.bytes_of("/topics/1/cursors.1")[8], std::byte{1});
  EXPECT_EQ(*load(), plain);
  const std::vector<NamedCursor> ahead = {{"a", {4}, {{5}, {}}}, {"b", {9}}};
  ASSERT_TRUE(file.write(CursorFile::encode(ahead)).ok());
  EXPECT_EQ(storage.bytes_of("/topics/1/cursors.0")[8], std::byte{3});
  EXPECT_EQ(*load(), ahead);
}

}  // namespace
}  // namespace lightq::log
