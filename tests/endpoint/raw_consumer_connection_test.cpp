/// Tests of a raw consumer's connection, byte by byte.
#include "plain/raw_consumer_connection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "endpoint/connection_harness.hpp"

namespace lightq::broker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Returns the stream of one message. Encoded here, so that the broker's code does not check itself.
std::string raw(const std::string& payload) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(payload.size() >> shift & 0xFF);
  return bytes + payload;
}

class RawConsumerTest : public testing::Test {
 protected:
  RawConsumerTest() : outlet_(wire_.loop, std::move(wire_.ours), owner_, wire_.scratch, host_) {
    EXPECT_TRUE(outlet_.start());
  }
  bool offer(std::uint64_t offset, const std::string& payload) {
    return outlet_.offer(Offset{offset}, as_byte_view(payload));
  }
  /// Reads until `bytes` bytes have arrived. Returns them.
  std::string receive(std::size_t bytes) {
    std::string all;
    EXPECT_TRUE(wire_.run_until([&] {
      all += wire_.received();
      return all.size() >= bytes;
    }));
    return all;
  }

  test::Wire wire_;
  test::FakeOwner owner_;
  test::FakePlainConsumerHost host_;
  RawConsumerConnection outlet_;
};

TEST_F(RawConsumerTest, TheConsumerIsReadyImmediatelyAndReceivesNothingBeforeTheFirstMessage) {
  EXPECT_TRUE(owner_.opened);
  EXPECT_TRUE(outlet_.is_open());
  EXPECT_TRUE(host_.ready);
  EXPECT_EQ(wire_.received(), "");
  EXPECT_EQ(outlet_.held_by(), FairShare::anonymous) << "not the administrator";
}

TEST_F(RawConsumerTest, AMessageIsItsLengthInFourBytesTheSmallestFirstAndItsPayload) {
  EXPECT_TRUE(offer(0, "abc"));
  EXPECT_TRUE(offer(1, ""));
  EXPECT_TRUE(offer(2, std::string(300, 'y')));
  outlet_.flush();
  EXPECT_EQ(wire_.received(), std::string("\3\0\0\0abc", 7) + std::string("\0\0\0\0", 4) +
                                  std::string("\x2c\1\0\0", 4) + std::string(300, 'y'));
  EXPECT_EQ(outlet_.handed(), 3U);
  EXPECT_EQ(outlet_.first_unsent(), std::nullopt);
}

TEST_F(RawConsumerTest, AMessageIsUnsentUntilItsLastByteHasLeft) {
  const std::string large(16 * limits::MiB, 'x');
  EXPECT_TRUE(offer(7, large));
  outlet_.flush();
  EXPECT_EQ(outlet_.first_unsent(), Offset{7});
  EXPECT_FALSE(offer(8, "no room"));
  std::string got = receive(large.size() / 2);
  EXPECT_EQ(outlet_.first_unsent(), Offset{7});
  got += receive(raw(large).size() - got.size());
  EXPECT_TRUE(got == raw(large));
  EXPECT_EQ(outlet_.first_unsent(), std::nullopt);
  EXPECT_GT(host_.writable, 0);
  EXPECT_TRUE(offer(8, "now"));
}

TEST_F(RawConsumerTest, ASlowConsumerCostsOneBufferAndKnowsItsUnsentMessages) {
  const std::string payload(1000, 'x');
  std::uint64_t taken = 0;
  while (taken < 100'000 && offer(taken, payload)) ++taken;
  ASSERT_LT(taken, 100'000U);
  const auto unsent = outlet_.unsent();
  ASSERT_FALSE(unsent.empty());
  EXPECT_EQ(unsent.back(), Offset{taken - 1});
  EXPECT_LT(unsent.size() * payload.size(), 128 * limits::KiB);
  EXPECT_EQ(receive(taken * raw(payload).size()).size(), taken * raw(payload).size());
  EXPECT_THAT(outlet_.unsent(), ElementsAre());
}

TEST_F(RawConsumerTest, ForgottenMessagesAreStillSentButNotCountedAsUnsent) {
  EXPECT_TRUE(offer(7, std::string(16 * limits::MiB, 'x')));
  outlet_.flush();
  ASSERT_EQ(outlet_.first_unsent(), Offset{7});
  outlet_.forget_unsent();
  EXPECT_EQ(outlet_.first_unsent(), std::nullopt);
  EXPECT_THAT(outlet_.unsent(), ElementsAre());
  const std::size_t bytes = raw(std::string(16 * limits::MiB, 'x')).size();
  EXPECT_EQ(receive(bytes).size(), bytes);
}

TEST_F(RawConsumerTest, ReportsTheLowestOffsetOfTheUnsentMessages) {
  EXPECT_TRUE(offer(7, "seven"));
  EXPECT_TRUE(offer(3, "three"));
  EXPECT_TRUE(offer(5, "five"));
  EXPECT_EQ(outlet_.first_unsent(), Offset{3});
  EXPECT_THAT(outlet_.unsent(), ElementsAre(Offset{7}, Offset{3}, Offset{5}));
  outlet_.flush();
  EXPECT_EQ(outlet_.first_unsent(), std::nullopt);
  EXPECT_TRUE(offer(8, "eight"));
  EXPECT_EQ(outlet_.first_unsent(), Offset{8});
}

TEST_F(RawConsumerTest, ARetiredConsumerIsSentItsMessagesAndDeliveredNoMore) {
  EXPECT_TRUE(offer(0, "x"));
  outlet_.retire();
  EXPECT_FALSE(offer(1, "y"));
  outlet_.flush();
  EXPECT_EQ(wire_.received(), raw("x"));
}

TEST_F(RawConsumerTest, AConsumerThatSendsAByteIsCut) {
  EXPECT_TRUE(offer(0, "x"));
  wire_.send("G");
  ASSERT_TRUE(wire_.run_until([&] { return owner_.closed; }));
  EXPECT_THAT(owner_.reason, HasSubstr("only receive"));
  EXPECT_FALSE(offer(1, "y"));
  EXPECT_THAT(outlet_.unsent(), ElementsAre(Offset{0}));
}

TEST_F(RawConsumerTest, AConsumerThatClosesOnlyItsSendingSideHasGone) {
  ASSERT_EQ(shutdown(wire_.peer.get(), SHUT_WR), 0);
  ASSERT_TRUE(wire_.run_until([&] { return owner_.closed; }));
  EXPECT_EQ(owner_.reason, "closed by the peer");
  EXPECT_TRUE(outlet_.was_open());
}

}  // namespace
}  // namespace lightq::broker
