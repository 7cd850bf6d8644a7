/// Tests of the cipher of a connection after a CURVE handshake.
#include "zmtp/curve_cipher.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "endpoint/curve_peers.hpp"
#include "support/planted.hpp"
#include "support/random.hpp"

namespace lightq::broker {
namespace {

using test::Bytes;
using test::CurveClient;
using test::message_frame;
using testing::HasSubstr;

constexpr std::uint64_t body_bytes_max = 100'000;
constexpr std::size_t overhead_bytes = 33;

class CurveCipherTest : public testing::Test {
 protected:
  static Bytes sealed(CurveCipher& cipher, const Bytes& plain) {
    Bytes wire;
    for (std::size_t at = 0; at < plain.size();) {
      const std::size_t step = cipher.seal(ByteView(plain).subspan(at), wire);
      EXPECT_GT(step, 0U);
      if (step == 0) break;
      at += step;
    }
    return wire;
  }
  /// Returns the plain bytes that `cipher` opens. Checks that it uses all of `wire` if there is no failure.
  static Bytes opened(CurveCipher& cipher, Bytes wire) {
    Bytes plain;
    Bytes answer;
    const std::size_t used = cipher.open(wire, plain, answer);
    EXPECT_TRUE(used == wire.size() || !cipher.failure().empty());
    EXPECT_TRUE(answer.empty());
    return plain;
  }

  const CurveKeys server_key_;
  const CurveKeyPair client_key_;
  CurveServer server_{server_key_};
  CurveClient client_{client_key_, server_key_.public_key()};
  test::CurvePair pair_{server_, client_, body_bytes_max};
};

TEST_F(CurveCipherTest, DecryptsMessagesWithTheirFlagsBothWays) {
  for (auto* from : {pair_.of_client.get(), pair_.of_server.get()}) {
    auto& to = from == pair_.of_client.get() ? *pair_.of_server : *pair_.of_client;
    for (const std::size_t bytes : {0U, 1U, 222U, 223U, 255U, 256U, 70'000U, 100'000U}) {
      const std::string body(bytes, 'b');
      for (const auto& plain :
           {message_frame(body), message_frame(body, true), message_frame(body, false, true)}) {
        const Bytes wire = sealed(*from, plain);
        EXPECT_EQ(wire.size(), bytes + overhead_bytes + (bytes + overhead_bytes > 255 ? 9 : 2));
        EXPECT_EQ(wire[0] & ~std::byte{2}, std::byte{0}) << "as libzmq sends it";
        EXPECT_EQ(opened(to, wire), plain) << bytes;
        EXPECT_EQ(to.failure(), "");
      }
    }
  }
}

TEST_F(CurveCipherTest, HidesAllPlainText) {
  const std::string secret = planted::payload;
  const Bytes wire = sealed(*pair_.of_server, message_frame(secret));
  EXPECT_THAT(std::string(as_text(wire)), testing::Not(HasSubstr(secret)));
  EXPECT_NE(sealed(*pair_.of_server, message_frame(secret)), wire) << "the same twice does not look the same";
}

TEST_F(CurveCipherTest, ManyFramesComeInOrderHoweverTheWireIsCut) {
  test::Random random;
  Bytes plain;
  for (int i = 0; i < 400; ++i) {
    const std::size_t bytes = random.one_in(20) ? random.below(body_bytes_max) : random.below(300);
    const Bytes frame = message_frame(std::string(bytes, static_cast<char>('a' + i % 26)), random.one_in(3));
    plain.insert(plain.end(), frame.begin(), frame.end());
  }
  const Bytes wire = sealed(*pair_.of_client, plain);
  Bytes come;
  Bytes got;
  Bytes answer;
  for (std::size_t at = 0; at < wire.size();) {
    const std::size_t step =
        std::min(wire.size() - at, random.one_in(3) ? random.between(1, 40) : random.between(1, 60'000));
    come.insert(come.end(), wire.begin() + static_cast<std::ptrdiff_t>(at),
                wire.begin() + static_cast<std::ptrdiff_t>(at + step));
    at += step;
    const std::size_t used = pair_.of_server->open(come, got, answer);
    come.erase(come.begin(), come.begin() + static_cast<std::ptrdiff_t>(used));
    ASSERT_LE(come.size(), 17'000U) << "what is left is bounded";
    ASSERT_EQ(pair_.of_server->failure(), "");
  }
  EXPECT_TRUE(come.empty());
  EXPECT_EQ(got, plain);
}

TEST_F(CurveCipherTest, PartOfAFrameIsNotSealed) {
  const Bytes whole = message_frame(std::string(300, 'x'));
  Bytes wire;
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_EQ(pair_.of_server->seal(ByteView(whole).first(bytes), wire), 0U);
  EXPECT_TRUE(wire.empty());
}

TEST_F(CurveCipherTest, AnyChangedBitEndsTheConnection) {
  const Bytes good = sealed(*pair_.of_client, message_frame("good"));
  const Bytes wire = sealed(*pair_.of_client, message_frame("changed"));
  // The first byte of the header decides how the rest is parsed, so another test changes it.
  for (std::size_t bit = 8; bit < 8 * wire.size(); ++bit) {
    CurveCipher& fresh = *(pair_.of_server = server_.make_cipher(body_bytes_max));
    EXPECT_EQ(opened(fresh, good), message_frame("good"));
    Bytes changed = wire;
    changed[bit / 8] ^= std::byte{1} << bit % 8;
    Bytes plain;
    Bytes answer;
    fresh.open(changed, plain, answer);
    EXPECT_TRUE(plain.empty()) << bit;
    // With a larger length the cipher waits for more bytes, and then fails to open them.
    Bytes more(200, std::byte{0});
    if (fresh.failure().empty()) {
      changed.insert(changed.end(), more.begin(), more.end());
      fresh.open(changed, plain, answer);
    }
    EXPECT_NE(fresh.failure(), "") << bit;
    EXPECT_TRUE(plain.empty()) << bit;
  }
}

TEST_F(CurveCipherTest, RepeatedOrReorderedMessagesAreRefused) {
  const Bytes first = sealed(*pair_.of_client, message_frame("1"));
  const Bytes second = sealed(*pair_.of_client, message_frame("2"));
  EXPECT_EQ(opened(*pair_.of_server, second), message_frame("2")) << "numbers may be left out";
  EXPECT_TRUE(opened(*pair_.of_server, first).empty());
  EXPECT_THAT(pair_.of_server->failure(), HasSubstr("used before"));

  auto again = server_.make_cipher(body_bytes_max);
  EXPECT_EQ(opened(*again, first), message_frame("1"));
  EXPECT_TRUE(opened(*again, first).empty());
  EXPECT_THAT(again->failure(), HasSubstr("used before"));
}

TEST_F(CurveCipherTest, ItsOwnMessagesAreRefusedIfReflected) {
  const Bytes own = sealed(*pair_.of_server, message_frame("mine"));
  EXPECT_TRUE(opened(*server_.make_cipher(body_bytes_max), own).empty());
}

TEST_F(CurveCipherTest, UnencryptedOrTooLongMessagesAreRefused) {
  for (const Bytes& wire : {message_frame("in clear, and longer than a command that is encrypted"),
                            message_frame(""), message_frame(std::string(40, '\0')), message_frame("x", true),
                            message_frame(std::string(50, 'x'), false, true)}) {
    auto cipher = server_.make_cipher(body_bytes_max);
    EXPECT_TRUE(opened(*cipher, wire).empty());
    EXPECT_THAT(cipher->failure(), HasSubstr("not encrypted"));
  }
  const Bytes longest = sealed(*pair_.of_client, message_frame(std::string(body_bytes_max, 'x')));
  EXPECT_EQ(opened(*pair_.of_server, longest).size(), body_bytes_max + 9);
  Bytes longer = sealed(*pair_.of_client, message_frame(std::string(body_bytes_max + 1, 'x')));
  longer.resize(20);
  Bytes plain;
  Bytes answer;
  pair_.of_server->open(longer, plain, answer);
  EXPECT_EQ(pair_.of_server->failure(), "a frame of 100001 bytes, above the maximum of 100000")
      << "as soon as its length is known";
}

TEST_F(CurveCipherTest, MessagesBeforeTheFailureAreDelivered) {
  Bytes wire = sealed(*pair_.of_client, message_frame("whole"));
  wire.push_back(std::byte{0xFF});
  EXPECT_EQ(opened(*pair_.of_server, wire), message_frame("whole"));
  EXPECT_NE(pair_.of_server->failure(), "");
}

TEST_F(CurveCipherTest, EachConnectionHasItsOwnKeys) {
  CurveServer other_server(server_key_);
  CurveClient other_client(client_key_, server_key_.public_key());
  const test::CurvePair other(other_server, other_client, body_bytes_max);
  EXPECT_TRUE(opened(*pair_.of_server, sealed(*other.of_client, message_frame("x"))).empty());
  EXPECT_THAT(pair_.of_server->failure(), HasSubstr("this connection's key does not decrypt"));
}

}  // namespace
}  // namespace lightq::broker
