/// Tests cursor files of versions 4 and 5: dead messages are loaded as they were saved, and impossible ones
/// are refused, byte by byte as in docs/log_format.md, "Dead messages".
#include <random>

#include <gtest/gtest.h>

#include <lightq/base/bytes.hpp>

#include "log/offsets/offset_model.hpp"
#include "log/saved_state/cursor_file.hpp"
#include "log/saved_state/unfinished_code.hpp"
#include "support/faulty_storage.hpp"

namespace lightq::log {
namespace {

using test::set_of;

using DeadBytes = std::vector<unsigned>;

/// Returns the unfinished messages of a cursor at 4 that these bytes encode, or nothing if they are refused.
std::optional<Unfinished> decoded(const DeadBytes& code, std::size_t memory = limits::MiB) {
  std::vector<std::byte> bytes;
  for (const unsigned byte : code) bytes.push_back(static_cast<std::byte>(byte));
  ByteView left = bytes;
  auto unfinished = take_unfinished(left, {4}, DeadParts::without_expired, memory);
  if (!unfinished || !left.empty()) return std::nullopt;
  return unfinished;
}

/// Returns the code of a cursor with the unfinished messages 4, 7 and 9, followed by `dead`.
DeadBytes with_dead(std::initializer_list<unsigned> dead) {
  DeadBytes code = {16, 4, 0x00, 0x04, 0x02, 2, 1, 2, 0x00, 0};
  code.insert(code.end(), dead);
  return code;
}

/// The example of docs/log_format.md.
Unfinished example() {
  Unfinished unfinished{{20}, set_of({{{4}, {5}}, {{7}, {8}}, {{9}, {10}}})};
  unfinished.delivery_bits = {{}, set_of({{{4}, {5}}})};
  SavedDead& dead = unfinished.dead;
  dead.parked = set_of({{{4}, {5}}});
  dead.rejected = set_of({{{7}, {8}}});
  dead.outbox = set_of({{{7}, {8}}});
  dead.under_way = {{7}};
  dead.incarnation = 5;
  dead.target = 6;
  dead.records = {{{7}, {1000}, {2000}, "no"}};
  dead.first_failures = {{{1'000'000}, set_of({{{9}, {10}}})}};
  return unfinished;
}

TEST(DeadFile, IsAsDocumented) {
  const DeadBytes documented =
      with_dead({2, 0x00, 2,    0x06, 2, 0x06, 1, 3, 1, 5, 6, 1,   3,   0xE8, 0x03, 0,    0,    0, 0,
                 0, 0,    0xD0, 0x07, 0, 0,    0, 0, 0, 0, 2, 'n', 'o', 1,    0xC0, 0x84, 0x3D, 2, 0x0A});
  EXPECT_EQ(decoded(documented), example());
  std::vector<std::byte> written;
  append_unfinished(example(), {4}, DeadParts::without_expired, written);
  ASSERT_EQ(written.size(), documented.size());
  for (std::size_t i = 0; i < written.size(); ++i)
    EXPECT_EQ(std::to_integer<unsigned>(written[i]), documented[i]);
  EXPECT_LE(written.size(), unfinished_code_bytes_max(example()));
}

TEST(DeadFile, IsWrittenOnlyWhenThereAreDeadMessages) {
  const auto version_of = [](const Unfinished& unfinished) {
    return load_little_endian<std::uint32_t>(CursorFile::encode({{"a", {4}, unfinished}}).slot.bytes.data() +
                                             8);
  };
  EXPECT_EQ(version_of(example()), 4U);
  Unfinished living = example();
  living.dead = {};
  EXPECT_EQ(version_of(living), 3U);
  // The next transfer must not get a number that was used.
  living.dead.incarnation = 5;
  living.dead.target = 6;
  living.dead.first_number = 2;
  EXPECT_EQ(version_of(living), 4U);
  Unfinished done{{4}, {}};
  done.dead = living.dead;
  EXPECT_EQ(version_of(done), 4U);
  test::FaultyStorage storage;
  CursorFile file(storage, "/topics/1");
  ASSERT_TRUE(file.write(CursorFile::encode({{"a", {4}, done}, {"b", {4}, example()}, {"c", {7}}})).ok());
  EXPECT_EQ(*CursorFile(storage, "/topics/1").load(),
            (std::vector<NamedCursor>{{"a", {4}, done}, {"b", {4}, example()}, {"c", {7}}}));
}

TEST(DeadFile, ExpiredMessagesAreInVersion5) {
  Unfinished unfinished = example();
  unfinished.dead.expired = set_of({{{4}, {5}}});
  const auto encoded = CursorFile::encode({{"a", {4}, unfinished}, {"b", {9}}});
  EXPECT_EQ(encoded.slot.version(), 5U);
  test::FaultyStorage storage;
  CursorFile file(storage, "/topics/1");
  ASSERT_TRUE(file.write(CursorFile::encode({{"a", {4}, unfinished}, {"b", {9}}})).ok());
  EXPECT_EQ(*CursorFile(storage, "/topics/1").load(),
            (std::vector<NamedCursor>{{"a", {4}, unfinished}, {"b", {9}}}));
  // The set of expired messages follows that of rejected ones.
  std::vector<std::byte> code;
  append_unfinished(unfinished, {4}, DeadParts::all, code);
  const std::vector<unsigned> start = {16, 4, 0x00, 0x04, 0x02, 2, 1,    2, 0x00,
                                       0,  2, 0x00, 2,    0x06, 2, 0x00, 2, 0x06};
  for (std::size_t i = 0; i < start.size(); ++i) EXPECT_EQ(std::to_integer<unsigned>(code[i]), start[i]) << i;
  const auto taken = [](const Unfinished& wrong) {
    std::vector<std::byte> bytes;
    append_unfinished(wrong, {4}, DeadParts::all, bytes);
    std::size_t memory = limits::MiB;
    ByteView left = bytes;
    return take_unfinished(left, {4}, DeadParts::all, memory);
  };
  EXPECT_EQ(taken(unfinished), unfinished);
  Unfinished both = unfinished;
  both.dead.expired = both.dead.rejected;
  EXPECT_FALSE(taken(both)) << "expired and rejected";
  Unfinished living = unfinished;
  living.dead.expired = set_of({{{9}, {10}}});
  EXPECT_FALSE(taken(living)) << "expired, and not dead";
}

TEST(DeadFile, RefusesTheImpossible) {
  EXPECT_TRUE(decoded(with_dead({1, 1, 1, 0, 1, 0, 0, 0, 0})).has_value()) << "no dead messages";
  EXPECT_TRUE(decoded(with_dead({0, 1, 1, 0, 1, 0, 0, 0, 0})).has_value()) << "all are parked";
  EXPECT_TRUE(decoded(with_dead({1, 1, 0, 0, 1, 0, 0, 0, 0})).has_value()) << "all are in the outbox";
  EXPECT_TRUE(decoded(with_dead({1, 1, 0, 2, 5, 0, 1, 5, 6, 0, 0})).has_value()) << "numbers out of order";
  const std::vector<std::pair<const char*, DeadBytes>> wrong = {
      {"no bytes", {}},
      {"a parked message that is finished", {2, 0x02, 1, 1, 0, 1, 0, 0, 0, 0}},
      {"a rejected message that is not dead", {1, 2, 0x00, 1, 0, 1, 0, 0, 0, 0}},
      {"a finished message in the outbox", {1, 1, 2, 0x02, 0, 1, 0, 0, 0, 0}},
      {"a parked message in the outbox", {2, 0x00, 1, 2, 0x00, 0, 1, 0, 0, 0, 0}},
      {"a finished message under way", {1, 1, 0, 1, 1, 1, 5, 6, 0, 0}},
      {"a message under way behind next", {1, 1, 0, 1, 16, 1, 5, 6, 0, 0}},
      {"a message under way that is not in the outbox", {1, 1, 2, 0x00, 1, 3, 1, 5, 6, 0, 0}},
      {"a message under way twice", {1, 1, 0, 2, 3, 3, 1, 5, 6, 0, 0}},
      {"more messages under way than there are", {1, 1, 2, 0x00, 2, 0, 3, 1, 5, 6, 0, 0}},
      {"messages under way without an incarnation", {1, 1, 0, 1, 0, 1, 0, 0, 0, 0}},
      {"the number 0", {1, 1, 0, 0, 0, 5, 6, 0, 0}},
      {"a number without an incarnation", {1, 1, 0, 0, 2, 0, 0, 0, 0}},
      {"an incarnation without a target", {1, 1, 0, 0, 1, 5, 0, 0, 0}},
      {"a target without an incarnation", {1, 1, 0, 0, 1, 0, 6, 0, 0}},
      {"a number beyond 2^62",
       {1, 1, 0, 0, 0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40, 5, 6, 0, 0}},
      {"a record of a message that is not dead",
       {1, 1, 1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
      {"a record without its end", {0, 1, 1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
      {"a reason longer than the file",
       {0, 1, 1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0}},
      {"a first failure of a dead message", {2, 0x00, 1, 1, 0, 1, 0, 0, 0, 1, 5, 2, 0x00}},
      {"a first failure twice", {1, 1, 1, 0, 1, 0, 0, 0, 2, 5, 2, 0x00, 1, 2, 0x00}},
      {"more bytes follow", {1, 1, 1, 0, 1, 0, 0, 0, 0, 0}},
  };
  for (const auto& [what, bytes] : wrong) {
    DeadBytes code = with_dead({});
    code.insert(code.end(), bytes.begin(), bytes.end());
    EXPECT_FALSE(decoded(code).has_value()) << what;
  }
  // Message 4 waits for its next delivery, and is parked.
  EXPECT_FALSE(decoded({16, 2, 0x00, 0, 1, 5, 2, 0x00, 2, 0x00, 1, 1, 0, 1, 0, 0, 0, 0}).has_value());
}

/// Returns the code of a cursor with 300 unfinished messages, which are dead, and so many under way.
std::vector<std::byte> code_with_under_way(std::uint64_t under_way, std::uint64_t first_number) {
  Unfinished many{{400}, set_of({{{4}, {304}}})};
  many.dead.outbox = many.messages;
  for (std::uint64_t i = 0; i < under_way; ++i) many.dead.under_way.push_back({4 + i});
  many.dead.first_number = first_number;
  many.dead.incarnation = 5;
  many.dead.target = 6;
  std::vector<std::byte> code;
  append_unfinished(many, {4}, DeadParts::without_expired, code);
  return code;
}

TEST(DeadFile, TransfersUnderWayHaveALimit) {
  for (const std::uint64_t first_number : {std::uint64_t{1}, SavedDead::first_number_max}) {
    auto code = code_with_under_way(SavedDead::under_way_max, first_number);
    ByteView left = code;
    std::size_t memory = limits::MiB;
    EXPECT_TRUE(take_unfinished(left, {4}, DeadParts::without_expired, memory).has_value());
    // One more: the bytes of the list follow its length, 256.
    const std::vector<std::byte> length = {std::byte{0x80}, std::byte{0x02}};
    const auto at = std::ranges::search(code, length).begin();
    ASSERT_NE(at, code.end());
    *at = std::byte{0x81};
    code.insert(at + 2 + 128, {std::byte{0x80}, std::byte{0x02}});
    left = code;
    EXPECT_FALSE(take_unfinished(left, {4}, DeadParts::without_expired, memory).has_value());
  }
}

TEST(DeadFile, ReasonsHaveALimit) {
  for (const std::size_t length : {SavedDead::reason_bytes_max, SavedDead::reason_bytes_max + 1}) {
    DeadBytes code = with_dead({0, 1, 1, 0, 1, 0, 0, 1, 0});
    code.resize(code.size() + 16);
    code.push_back(static_cast<unsigned>(length % 128 + 128));
    code.push_back(static_cast<unsigned>(length / 128));
    code.resize(code.size() + length, 'r');
    code.push_back(0);
    EXPECT_EQ(decoded(code).has_value(), length == SavedDead::reason_bytes_max);
  }
}

TEST(DeadFile, TakesNoMoreMemoryThanItMay) {
  Unfinished many{{200'000}, set_of({{{4}, {200'000}}})};
  for (std::uint64_t i = 4; i < 200'000; i += 3) many.dead.outbox.add({{i}, {i + 1}});
  many.dead.records = {{{4}, {}, {}, std::string(256, 'r')}};
  std::vector<std::byte> code;
  append_unfinished(many, {4}, DeadParts::without_expired, code);
  for (const std::size_t most : {std::size_t{0}, std::size_t{100'000}, std::size_t{limits::MiB}}) {
    std::size_t memory_left = most;
    ByteView bytes = code;
    EXPECT_EQ(take_unfinished(bytes, {4}, DeadParts::without_expired, memory_left).has_value(),
              most == limits::MiB)
        << most;
    EXPECT_LE(memory_left, most);
  }
}

// The log has lost its end: the messages there are no longer dead, and numbers that were under way are not
// used again.
TEST(DeadFile, IsCutWithTheLog) {
  Unfinished cut = example();
  EXPECT_TRUE(cut.cut_at({8}));
  EXPECT_EQ(cut.dead.outbox, example().dead.outbox);
  EXPECT_EQ(cut.dead.incarnation, 5U);
  EXPECT_TRUE(cut.dead.first_failures.empty());
  EXPECT_TRUE(cut.cut_at({7}));
  EXPECT_TRUE(cut.dead.outbox.empty() && cut.dead.rejected.empty() && cut.dead.records.empty());
  EXPECT_EQ(cut.dead.parked, example().dead.parked);
  EXPECT_EQ(cut.dead.incarnation, 0U);
  EXPECT_TRUE(cut.cut_at({4}));
  EXPECT_TRUE(cut.dead.empty());
}

TEST(DeadFile, NoFlippedBitMakesAnImpossibleCursor) {
  std::vector<std::byte> code;
  append_unfinished(example(), {4}, DeadParts::without_expired, code);
  for (std::size_t bit = 0; bit < 8 * code.size(); ++bit) {
    std::vector<std::byte> flipped = code;
    flipped[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    ByteView left = flipped;
    std::size_t memory_left = limits::MiB;
    const auto unfinished = take_unfinished(left, {4}, DeadParts::without_expired, memory_left);
    if (!unfinished) continue;
    std::vector<std::byte> again;
    append_unfinished(*unfinished, {4}, DeadParts::without_expired, again);
    ByteView second = again;
    memory_left = limits::MiB;
    EXPECT_EQ(take_unfinished(second, {4}, DeadParts::without_expired, memory_left), unfinished)
        << "bit " << bit;
  }
}

}  // namespace
}  // namespace lightq::log
