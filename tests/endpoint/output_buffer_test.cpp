/// Tests of output that is sent from a buffer, or directly from the caller's memory.
#include "net/output_buffer.hpp"

#include <sys/socket.h>

#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "net/socket.hpp"
#include "support/random.hpp"

namespace lightq::broker {
namespace {

class OutputBufferTest : public ::testing::Test {
 protected:
  OutputBufferTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()));
    near_ = UniqueFd(ends[0]);
    far_ = UniqueFd(ends[1]);
  }
  static std::vector<std::byte> pattern(std::size_t bytes, unsigned start) {
    std::vector<std::byte> made(bytes);
    for (std::size_t i = 0; i < bytes; ++i) made[i] = static_cast<std::byte>((start + i * 7) & 255U);
    return made;
  }
  /// Receives up to `bytes` bytes at the other end.
  void receive(std::size_t bytes) {
    std::vector<std::byte> space(bytes);
    const auto got = recv(far_.get(), space.data(), space.size(), MSG_DONTWAIT);
    if (got > 0) received_.insert(received_.end(), space.begin(), space.begin() + got);
  }
  void receive_all() {
    for (std::size_t before = received_.size() + 1; before != received_.size();) {
      before = received_.size();
      receive(1 << 20);
    }
  }

  UniqueFd near_;
  UniqueFd far_;
  std::vector<std::byte> received_;
  OutputBuffer output_;
};

TEST_F(OutputBufferTest, ExternalBytesFollowBufferedOnesWithoutACopy) {
  const auto head = pattern(36, 1);
  const auto behind = pattern(20'000, 2);
  output_.append(head);
  EXPECT_EQ(FlushOutcome::all_sent, output_.flush_with(near_.get(), behind));
  EXPECT_EQ(0U, output_.buffered());
  EXPECT_EQ(head.size() + behind.size(), output_.sent_total());
  EXPECT_EQ(output_.sent_total(), output_.appended_total());
  receive_all();
  auto expected = head;
  expected.insert(expected.end(), behind.begin(), behind.end());
  EXPECT_EQ(expected, received_);
}

TEST_F(OutputBufferTest, KeepsOnlyTheBytesThatTheSystemDoesNotAccept) {
  const auto huge = pattern(8'000'000, 3);
  ASSERT_EQ(FlushOutcome::blocked, output_.flush_with(near_.get(), huge));
  EXPECT_GT(output_.sent_total(), 0U);
  EXPECT_EQ(huge.size(), output_.sent_total() + output_.buffered());
  while (output_.buffered() > 0) {
    receive_all();
    ASSERT_NE(FlushOutcome::broken, output_.flush(near_.get()));
  }
  receive_all();
  EXPECT_EQ(huge, received_);
}

TEST_F(OutputBufferTest, KeepsTheOrderHoweverThePeerReads) {
  lightq::test::Random random;
  std::vector<std::byte> expected;
  bool blocked = false;
  const auto add = [&](const std::vector<std::byte>& bytes) {
    expected.insert(expected.end(), bytes.begin(), bytes.end());
  };
  for (unsigned round = 0; round < 2000; ++round) {
    const auto bytes = pattern(static_cast<std::size_t>(random.below(30'000)), round);
    add(bytes);
    if (blocked || random.one_in(2)) {
      output_.append(bytes);
    } else {
      blocked = output_.flush_with(near_.get(), bytes) == FlushOutcome::blocked;
    }
    if (random.one_in(2)) receive(static_cast<std::size_t>(random.between(1, 60'000)));
    if (random.one_in(3)) blocked = output_.flush(near_.get()) == FlushOutcome::blocked;
    ASSERT_EQ(expected.size(), output_.appended_total());
  }
  while (output_.buffered() > 0) {
    receive_all();
    ASSERT_NE(FlushOutcome::broken, output_.flush(near_.get()));
  }
  receive_all();
  EXPECT_EQ(expected, received_);
}

TEST_F(OutputBufferTest, ReportsThatThePeerHasClosed) {
  far_.reset();
  const auto bytes = pattern(10, 4);
  EXPECT_EQ(FlushOutcome::broken, output_.flush_with(near_.get(), bytes));
  EXPECT_EQ(0U, output_.buffered());
}

}  // namespace
}  // namespace lightq::broker
