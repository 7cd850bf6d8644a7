/// Tests of ByteRing: bytes that pass through memory that two sides share.
#include <lightq/base/byte_ring.hpp>

#include <gtest/gtest.h>

#include <array>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "support/random.hpp"

namespace lightq {
namespace {

class ByteRingTest : public ::testing::Test {
 protected:
  static constexpr std::size_t bytes = 64;

  std::size_t write(const std::string& text) { return writer.write(as_byte_view(text)); }
  /// Returns at most `most` of the bytes that the reader can see.
  std::string copy(std::size_t most = bytes) {
    std::vector<std::byte> to(most);
    const std::size_t got = reader.copy(to);
    return std::string(as_text(ByteView(to).first(got)));
  }

  ByteRingWords words;
  std::array<std::byte, bytes> memory{};
  ByteRingWriter writer{words, memory};
  ByteRingReader reader{words, memory};
};

TEST_F(ByteRingTest, APublishedMessageCanBeRead) {
  EXPECT_EQ("", copy());
  EXPECT_EQ(5U, write("hello"));
  EXPECT_EQ("", copy()) << "not published";
  EXPECT_FALSE(writer.publish());
  EXPECT_EQ("hel", copy(3));
  EXPECT_FALSE(reader.release(3));
  EXPECT_EQ("lo", copy());
  EXPECT_FALSE(reader.release(2));
  EXPECT_EQ(0U, reader.available());
}

TEST_F(ByteRingTest, BytesFurtherBackCanBeReadAhead) {
  std::vector<std::byte> to(bytes);
  EXPECT_EQ(0U, reader.copy(to, 1));
  for (int round = 0; round < 20; ++round) {
    EXPECT_EQ(10U, write("0123456789"));
    EXPECT_FALSE(writer.publish());
    EXPECT_EQ(6U, reader.copy(to, 4));
    EXPECT_EQ("456789", as_text(ByteView(to).first(6)));
    EXPECT_EQ(2U, reader.copy(std::span(to).first(2), 7));
    EXPECT_EQ("78", as_text(ByteView(to).first(2)));
    EXPECT_EQ(0U, reader.copy(to, 10));
    EXPECT_EQ(0U, reader.copy(to, 1000));
    EXPECT_FALSE(reader.release(10));
  }
}

TEST_F(ByteRingTest, AFullRingAcceptsNothingUntilBytesAreReleased) {
  EXPECT_EQ(bytes, write(std::string(100, 'a')));
  EXPECT_EQ(0U, write("b"));
  EXPECT_FALSE(writer.publish());
  EXPECT_EQ(std::string(bytes, 'a'), copy());
  EXPECT_EQ(0U, write("b")) << "copied is not released";
  EXPECT_FALSE(reader.release(10));
  EXPECT_EQ(10U, write(std::string(20, 'b')));
  EXPECT_FALSE(writer.publish());
  EXPECT_FALSE(reader.release(54));
  EXPECT_EQ(std::string(10, 'b'), copy());
}

TEST_F(ByteRingTest, WrapsAroundAtItsEnd) {
  test::Random random(7);
  std::string sent;
  std::string got;
  for (int i = 0; i < 1000; ++i) {
    std::string more(random.below(40), static_cast<char>('a' + i % 26));
    more.resize(write(more));
    sent += more;
    EXPECT_FALSE(writer.publish());
    const std::string came = copy(random.below(50));
    got += came;
    EXPECT_FALSE(reader.release(came.size()));
  }
  const std::string rest = copy();
  EXPECT_LT(10'000U, sent.size());
  EXPECT_EQ(sent, got + rest);
}

TEST_F(ByteRingTest, AWaitingReaderIsWokenOnce) {
  EXPECT_TRUE(reader.wait());
  write("a");
  EXPECT_TRUE(writer.publish());
  write("b");
  EXPECT_FALSE(writer.publish());
  EXPECT_FALSE(reader.wait()) << "something has come";
  write("c");
  EXPECT_FALSE(writer.publish()) << "it does not wait";
}

TEST_F(ByteRingTest, AWaitingWriterIsWokenOnceWhenHalfIsFree) {
  EXPECT_FALSE(writer.wait()) << "all is free";
  EXPECT_EQ(bytes, write(std::string(bytes, 'a')));
  EXPECT_FALSE(writer.publish());
  EXPECT_TRUE(writer.wait());
  EXPECT_FALSE(reader.release(bytes / 2 - 1));
  EXPECT_TRUE(reader.release(1));
  EXPECT_FALSE(reader.release(1)) << "it was woken";
}

TEST_F(ByteRingTest, RejectsImpossiblePositions) {
  words.written = bytes + 1;
  EXPECT_EQ(0U, reader.available());
  EXPECT_TRUE(reader.broken());
  EXPECT_EQ("", copy());
  words.written = 1;
  EXPECT_EQ(0U, reader.available()) << "never again";
  EXPECT_FALSE(reader.wait());

  EXPECT_EQ(bytes, write(std::string(bytes, 'a')));
  EXPECT_FALSE(writer.publish());
  words.taken = bytes + 1;
  EXPECT_EQ(0U, write("b"));
  EXPECT_TRUE(writer.broken());
  words.taken = bytes;
  EXPECT_EQ(0U, write("b"));
  EXPECT_FALSE(writer.wait());
}

TEST_F(ByteRingTest, APositionThatGoesBackIsRefused) {
  EXPECT_EQ(10U, write(std::string(10, 'a')));
  EXPECT_FALSE(writer.publish());
  EXPECT_FALSE(reader.release(copy().size()));
  words.written = 9;
  EXPECT_EQ(0U, reader.available());
  EXPECT_TRUE(reader.broken());
}

/// Lets a thread wait until another thread wakes it.
class Sleeper {
 public:
  void wake() {
    woken_.fetch_add(1);
    woken_.notify_one();
  }
  void rest() {
    woken_.wait(seen_);
    seen_ = woken_.load();
  }

 private:
  std::atomic<int> woken_{0};
  int seen_ = 0;
};

TEST(ByteRingThreads, NoThreadSleepsThroughAChangeByTheOther) {
  constexpr std::size_t total = 3'000'000;
  ByteRingWords words;
  std::array<std::byte, 256> memory{};
  Sleeper of_writer;
  Sleeper of_reader;
  std::jthread writing([&] {
    ByteRingWriter writer(words, memory);
    test::Random random(1);
    std::vector<std::byte> piece(100);
    for (std::size_t sent = 0; sent < total;) {
      const std::size_t count = std::min<std::size_t>(1 + random.below(piece.size()), total - sent);
      for (std::size_t i = 0; i < count; ++i) piece[i] = static_cast<std::byte>((sent + i) % 251);
      const std::size_t taken = writer.write(ByteView(piece).first(count));
      sent += taken;
      if (taken > 0 && writer.publish()) of_reader.wake();
      if (taken < count && writer.wait()) of_writer.rest();
    }
  });
  ByteRingReader reader(words, memory);
  test::Random random(2);
  std::vector<std::byte> piece(300);
  for (std::size_t got = 0; got < total;) {
    const std::size_t count = reader.copy(std::span(piece).first(1 + random.below(piece.size())));
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(static_cast<std::byte>((got + i) % 251), piece[i]);
    got += count;
    if (count > 0 && reader.release(count)) of_writer.wake();
    if (count == 0 && reader.wait()) of_reader.rest();
  }
}

}  // namespace
}  // namespace lightq
