/// Tests of the CURVE handshake, and of the authorizers that require it, byte by byte.
#include "zmtp/zmtp_curve.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "endpoint/curve_peers.hpp"

namespace lightq::broker {
namespace {

using test::Bytes;
using test::curve_greeting;
using test::CurveClient;
using test::data_of;
using test::error_of;
using test::GateSide;
using testing::HasSubstr;

constexpr Grant grant{TopicId{3}, EndpointRole::produce};

class ZmtpCurveTest : public testing::Test {
 protected:
  ZmtpCurveTest() {
    open_.encrypt(server_, nullptr);
    guarded_.encrypt(server_, &keys_);
    keys_.put({client_.public_key(), grant, later_ms, {}});
  }
  /// Performs a client's handshake with these keys, up to INITIATE. `hello` and `initiate` alter the client's
  /// commands on their way.
  using Alter = std::function<void(Bytes&)>;
  struct Said {
    Bytes welcome;
    Bytes end;
  };
  Said shake(GateSide& side, const CurveKeyPair& key, const CurvePublicKey& server, const Alter& hello = {},
             const Alter& initiate = {}, std::string_view type = "PUSH") {
    CurveClient client(key, server);
    Said said;
    side.hear(curve_greeting());
    Bytes out;
    client.append_hello(out);
    if (hello) hello(out);
    said.welcome = side.hear(out);
    if (!client.take_welcome(data_of(said.welcome, "WELCOME"))) return said;
    out.clear();
    client.append_initiate(out, zmtp::metadata_of(type));
    if (initiate) initiate(out);
    said.end = side.hear(out);
    return said;
  }

  static constexpr std::uint64_t later_ms = 1'800'000'060'000;
  Timestamp time_{1'800'000'000'000'000};
  const WallClock now_ = [this] { return time_; };
  const TicketKey tickets_{TicketKey::random_bytes()};
  const CurveKeys server_;
  const CurveKeyPair client_;
  ClientKeys keys_;
  ConnectionAuthorizer open_;
  ConnectionAuthorizer guarded_{tickets_, now_, grant};
};

TEST_F(ZmtpCurveTest, ARegisteredKeyIsAcceptedWithAnySplitOfItsBytes) {
  for (const std::size_t piece : {1U, 2U, 7U, 64U, 100U, 300U}) {
    GateSide side(guarded_);
    CurveClient client(client_, server_.public_key());
    const Bytes greeting = side.hear(curve_greeting(), piece);
    ASSERT_EQ(greeting.size(), zmtp::greeting_bytes);
    EXPECT_EQ(zmtp::mechanism_of(greeting), zmtp::Mechanism::curve);
    EXPECT_TRUE(zmtp::is_server(greeting));
    Bytes out;
    client.append_hello(out);
    EXPECT_EQ(out.size(), 2 + 200U) << "RFC 26";
    const Bytes welcome = side.hear(out, piece);
    EXPECT_EQ(welcome.size(), 2 + 168U) << "RFC 26";
    ASSERT_TRUE(client.take_welcome(data_of(welcome, "WELCOME")));
    out.clear();
    client.append_initiate(out, zmtp::metadata_of("PUSH"));
    EXPECT_EQ(out.size(), 9 + 257 + zmtp::metadata_of("PUSH").size()) << "RFC 26";
    const auto properties = client.take_ready(data_of(side.hear(out, piece), "READY"));
    ASSERT_TRUE(properties);
    EXPECT_EQ(zmtp::socket_type_of_ready(*properties), "PULL");
    ASSERT_TRUE(side.handshake.complete()) << side.handshake.failure();
    EXPECT_EQ(side.left(), 0U);
    const auto cipher = side.handshake.take_cipher();
    ASSERT_NE(cipher, nullptr);

    Bytes wire;
    Bytes plain;
    Bytes answer;
    client.make_cipher(100)->seal(test::message_frame("first"), wire);
    cipher->open(wire, plain, answer);
    EXPECT_EQ(plain, test::message_frame("first")) << cipher->failure();
  }
}

TEST_F(ZmtpCurveTest, AnyChangedBitOfHelloOrInitiateIsRefused) {
  std::size_t hello_bits = 8 * 202;
  std::size_t initiate_bits = 8 * (9 + 257 + zmtp::metadata_of("PUSH").size());
  const auto flip = [](std::size_t bit) {
    return [bit](Bytes& bytes) { bytes.at(bit / 8) ^= std::byte{1} << bit % 8; };
  };
  const auto unused = [](std::size_t byte) {  // HELLO's minor version and padding, which have no meaning
    return byte >= 9 && byte < 2 + 6 + 2 + 72;
  };
  for (std::size_t bit = 0; bit < hello_bits; bit += 5) {
    if (unused(bit / 8)) continue;
    GateSide side(guarded_);
    shake(side, client_, server_.public_key(), flip(bit));
    EXPECT_FALSE(side.handshake.complete()) << "HELLO, bit " << bit;
  }
  for (std::size_t bit = 0; bit < initiate_bits; bit += 5) {
    GateSide side(guarded_);
    const auto said = shake(side, client_, server_.public_key(), {}, flip(bit));
    EXPECT_FALSE(side.handshake.complete()) << "INITIATE, bit " << bit;
    EXPECT_EQ(side.handshake.take_cipher(), nullptr);
    const bool in_data = bit >= 8 * 19;  // after the command's name
    EXPECT_TRUE(!in_data || error_of(said.end) == "Invalid INITIATE") << bit;
  }
}

TEST_F(ZmtpCurveTest, TruncatedCommandsAreRefused) {
  const auto shorten = [](std::size_t by, std::size_t header_bytes) {
    return [=](Bytes& bytes) {
      bytes.resize(bytes.size() - by);
      // Makes the frame's length fit the shorter frame.
      if (header_bytes == 2) bytes[1] = static_cast<std::byte>(bytes.size() - 2);
      if (header_bytes == 9) {
        bytes[7] = static_cast<std::byte>((bytes.size() - 9) / 256);
        bytes[8] = static_cast<std::byte>((bytes.size() - 9) % 256);
      }
    };
  };
  for (std::size_t by = 1; by < 194; ++by) {
    GateSide side(guarded_);
    const auto said = shake(side, client_, server_.public_key(), shorten(by, 2));
    EXPECT_EQ(error_of(said.welcome), "Invalid HELLO") << by;
    EXPECT_FALSE(side.handshake.complete());
  }
  for (std::size_t by = 1; by < 270; ++by) {
    GateSide side(guarded_);
    const auto said = shake(side, client_, server_.public_key(), {}, shorten(by, 9));
    EXPECT_EQ(error_of(said.end), "Invalid INITIATE") << by;
    EXPECT_FALSE(side.handshake.complete());
  }
}

TEST_F(ZmtpCurveTest, CommandsInAnotherOrderAreRefused) {
  CurveClient client(client_, server_.public_key());
  Bytes hello;
  client.append_hello(hello);
  {
    GateSide side(guarded_);
    side.hear(curve_greeting());
    Bytes ready;
    zmtp::append_ready(ready, "PUSH");
    EXPECT_EQ(error_of(side.hear(ready)), "Invalid HELLO");
    EXPECT_THAT(side.handshake.failure(), HasSubstr("without HELLO"));
  }
  {
    GateSide side(guarded_);
    side.hear(curve_greeting());
    side.hear(hello);
    EXPECT_EQ(error_of(side.hear(hello)), "Invalid INITIATE");
    EXPECT_FALSE(side.handshake.complete());
  }
  {
    // The INITIATE of another connection of the same client.
    GateSide first(guarded_);
    first.hear(curve_greeting());
    ASSERT_TRUE(client.take_welcome(data_of(first.hear(hello), "WELCOME")));
    Bytes initiate;
    client.append_initiate(initiate, zmtp::metadata_of("PUSH"));
    GateSide second(guarded_);
    second.hear(curve_greeting());
    second.hear(hello);
    EXPECT_EQ(error_of(second.hear(initiate)), "Invalid INITIATE");
    EXPECT_TRUE(data_of(first.hear(initiate), "READY").size() > 0);
    EXPECT_TRUE(first.handshake.complete());
  }
}

TEST_F(ZmtpCurveTest, AClientThatCannotProveItsKeyIsRefused) {
  // A client that knows a registered public key, but not the secret one. It puts that key first into
  // INITIATE's box, but vouches with its own.
  const CurveKeyPair thief;
  CurveServer server(server_);
  const CurveKeyPair transient;
  CurveClient client(thief, server_.public_key());
  Bytes out;
  client.append_hello(out);
  Bytes welcome;
  ASSERT_EQ(server.take_hello(data_of(out, "HELLO"), welcome), CurveOutcome::good);
  ASSERT_TRUE(client.take_welcome(data_of(welcome, "WELCOME")));
  out.clear();
  client.append_initiate(out, zmtp::metadata_of("PUSH"), client_.public_key());
  EXPECT_EQ(server.take_initiate(data_of(out, "INITIATE")), CurveOutcome::malformed);
}

TEST_F(ZmtpCurveTest, AKeyIsValidForItsRegistration) {
  const auto fault = [&](const CurveKeyPair& key) {
    GateSide side(guarded_);
    const auto said = shake(side, key, server_.public_key());
    EXPECT_FALSE(side.handshake.complete());
    EXPECT_TRUE(side.handshake.unauthorized());
    EXPECT_EQ(error_of(said.end), "400") << "libzmq's word for not authorised";
    return side.handshake.failure();
  };
  const CurveKeyPair unknown, of_topic, of_role, expired;
  keys_.put({of_topic.public_key(), {TopicId{4}, grant.role}, later_ms, {}});
  keys_.put({of_role.public_key(), {grant.topic, EndpointRole::pull}, later_ms, {}});
  keys_.put({of_role.public_key(), {TopicId{2}, grant.role}, later_ms, {}});
  keys_.put({expired.public_key(), grant, static_cast<std::uint64_t>(time_.us / 1000), 0, 0});
  EXPECT_EQ(fault(unknown), "a key that is not registered");
  EXPECT_EQ(fault(of_topic), "a key of another topic");
  EXPECT_EQ(fault(of_role), "a key of another role or mode");
  EXPECT_EQ(fault(expired), "an expired key");
  keys_.put({expired.public_key(), grant, later_ms, {}});
  GateSide renewed(guarded_);
  shake(renewed, expired, server_.public_key());
  EXPECT_TRUE(renewed.handshake.complete());
  keys_.remove_topic(grant.topic);
  EXPECT_EQ(fault(client_), "a key that is not registered");
}

TEST_F(ZmtpCurveTest, AnOpenEndpointAcceptsAnyKeyOrTheAllowedOnes) {
  const CurveKeyPair anybody;
  GateSide side(open_);
  shake(side, anybody, server_.public_key());
  EXPECT_TRUE(side.handshake.complete());
  const std::set<CurvePublicKey> allowed{client_.public_key()};
  ConnectionAuthorizer chosen = open_;
  chosen.allow_only(allowed);
  GateSide refused(chosen);
  const auto said = shake(refused, anybody, server_.public_key());
  EXPECT_EQ(error_of(said.end), "400");
  EXPECT_TRUE(refused.handshake.unauthorized());
  GateSide let_in(chosen);
  shake(let_in, client_, server_.public_key());
  EXPECT_TRUE(let_in.handshake.complete());
}

TEST_F(ZmtpCurveTest, AServerWithANewKeyAcceptsClientsThatKnowTheFormerOneWhileItHasThat) {
  const CurveKeys::Held first{std::make_shared<const CurveKeyPair>()};
  const CurveKeys::Held both{std::make_shared<const CurveKeyPair>(), first.current};
  CurveKeys renewed(first);
  ConnectionAuthorizer authorizer;
  authorizer.encrypt(renewed, nullptr);
  const auto is_admitted = [&](const CurveKeyPair& server) {
    GateSide side(authorizer);
    shake(side, client_, server.public_key());
    return side.handshake.complete();
  };
  EXPECT_TRUE(is_admitted(*first.current));
  EXPECT_FALSE(is_admitted(*both.current));
  GateSide begun(authorizer);
  begun.hear(curve_greeting());  // chooses its keys
  renewed.renew(both);
  EXPECT_EQ(renewed.public_key(), both.current->public_key());
  EXPECT_TRUE(is_admitted(*both.current));
  EXPECT_TRUE(is_admitted(*both.former));
  EXPECT_FALSE(is_admitted(CurveKeyPair()));
  renewed.renew({both.current});
  EXPECT_TRUE(is_admitted(*both.current));
  EXPECT_FALSE(is_admitted(*both.former));
  CurveClient client(client_, first.current->public_key());
  Bytes out;
  client.append_hello(out);
  EXPECT_TRUE(client.take_welcome(data_of(begun.hear(out), "WELCOME"))) << "a handshake keeps its keys";
}

TEST_F(ZmtpCurveTest, APeerWithoutEncryptionOrWithAnotherServersKeyIsToldSo) {
  GateSide side(open_);
  const auto said = shake(side, client_, CurveKeyPair().public_key());
  EXPECT_EQ(error_of(said.welcome), "400");
  EXPECT_TRUE(side.handshake.unauthorized());

  for (const auto mechanism : {zmtp::Mechanism::null, zmtp::Mechanism::plain}) {
    GateSide door(open_);
    const auto greeting = zmtp::greeting(mechanism);
    const Bytes answer = door.hear({greeting.begin(), greeting.end()});
    ASSERT_EQ(answer.size(), zmtp::greeting_bytes);
    EXPECT_EQ(zmtp::mechanism_of(answer), zmtp::Mechanism::curve);
    EXPECT_TRUE(door.handshake.unauthorized());
    EXPECT_THAT(door.handshake.failure(), HasSubstr("not encrypted"));
  }
}

TEST_F(ZmtpCurveTest, WithoutEncryptionCurveIsNotSpoken) {
  const ConnectionAuthorizer clear(tickets_, now_, grant);
  GateSide side(clear);
  side.hear(curve_greeting());
  EXPECT_THAT(side.handshake.failure(), HasSubstr("other than NULL and PLAIN"));
}

TEST_F(ZmtpCurveTest, AnIncompatibleSocketTypeIsRefused) {
  GateSide side(open_);
  const auto said = shake(side, client_, server_.public_key(), {}, {}, "PULL");
  EXPECT_EQ(error_of(said.end), "Invalid socket type");
  EXPECT_FALSE(side.handshake.complete());
  EXPECT_FALSE(side.handshake.unauthorized());
}

TEST_F(ZmtpCurveTest, PublicKeysOfLowOrderAreRefused) {
  CurveServer server(server_);
  CurveClient client(client_, server_.public_key());
  Bytes hello;
  client.append_hello(hello);
  Bytes data = data_of(hello, "HELLO");
  std::fill_n(data.begin() + 74, 32, std::byte{0});  // a point of low order
  Bytes welcome;
  EXPECT_EQ(server.take_hello(data, welcome), CurveOutcome::malformed);
  EXPECT_FALSE(CurveBox::between(*server_.held().current, CurvePublicKey{}).has_value());
  EXPECT_FALSE(CurveClient(client_, CurvePublicKey{}).take_welcome(Bytes(160)));
}

}  // namespace
}  // namespace lightq::broker
