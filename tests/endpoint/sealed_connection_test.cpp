/// Tests of a connection with bytes that are encrypted on the wire in both directions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "endpoint/connection_harness.hpp"
#include "endpoint/toy_cipher.hpp"
#include "net/large_frame.hpp"
#include "support/random.hpp"

namespace lightq::broker {
namespace {

using lightq::test::FakeOwner;
using lightq::test::ToyCipher;
using lightq::test::Wire;
using testing::HasSubstr;

constexpr std::size_t unit_bytes_max = 100'000;
constexpr std::size_t length_bytes = 4;
constexpr std::size_t large_from = 20'000;

/// Collects messages: four bytes of length, then the body. Large messages are received into their own memory.
/// After every `pause_after` messages it stops reading until the test calls `go_on`.
class Collector final : public Connection {
 public:
  Collector(EventLoop& loop, UniqueFd descriptor, Owner& owner, std::vector<std::byte>& scratch, bool knocks,
            bool any_bytes)
      : Connection(loop, std::move(descriptor), owner, scratch), knocks_(knocks), any_bytes_(any_bytes) {}

  std::vector<std::string> messages;
  std::size_t pause_after = SIZE_MAX;

  [[nodiscard]] bool is_paused() const { return paused(); }
  void go_on() {
    set_paused(false);
    loop().call_soon(*this);
  }
  void say(const std::string& text) {
    output().append(as_byte_view(text));
    output().flush();
  }
  void say_from_elsewhere(const std::string& head, const std::string& behind) {
    output().append(as_byte_view(head));
    output().flush_with(as_byte_view(behind));
  }
  [[nodiscard]] const OutputBuffer& buffer() const { return output(); }

 protected:
  [[nodiscard]] std::unique_ptr<WireCipher> make_cipher() const override {
    return std::make_unique<ToyCipher>(unit_bytes_max, knocks_, any_bytes_);
  }
  void on_open() override {}
  std::size_t consume(std::span<std::byte> bytes) override {
    std::size_t at = 0;
    while (!paused() && bytes.size() - at >= length_bytes) {
      std::uint32_t body = 0;
      std::memcpy(&body, bytes.data() + at, length_bytes);
      const auto left = bytes.subspan(at);
      const std::size_t whole = length_bytes + body;
      if (left.size() < whole) {
        if (whole < large_from) break;
        EXPECT_TRUE(input().large_frame().begin(whole, left));
        return bytes.size();
      }
      take(left.first(whole));
      at += whole;
    }
    return at;
  }
  void large_frame_received(std::span<std::byte> whole, std::size_t /*bytes*/) override {
    if (!whole.empty()) take(whole);
  }

 private:
  void take(ByteView message) {
    messages.emplace_back(as_text(message.subspan(length_bytes)));
    if (messages.size() % pause_after == 0) set_paused(true);
  }
  const bool knocks_;
  const bool any_bytes_;
};

class SealedConnectionTest : public testing::Test {
 protected:
  void start(bool knocks = false, bool any_bytes = false) {
    connection_ = std::make_unique<Collector>(wire_.loop, std::move(wire_.ours), owner_, wire_.scratch,
                                              knocks, any_bytes);
    ASSERT_TRUE(connection_->start());
  }
  static std::string message(const std::string& body) {
    const auto bytes = static_cast<std::uint32_t>(body.size());
    std::string text(length_bytes, '\0');
    std::memcpy(text.data(), &bytes, length_bytes);
    return text + body;
  }
  static std::string sealed(const std::string& plain) {
    std::vector<std::byte> wire;
    ToyCipher::seal_to(as_byte_view(plain), wire);
    return std::string(as_text(wire));
  }
  /// Returns the plain text of the bytes that the peer received.
  static std::string opened(std::string wire) {
    ToyCipher peer(unit_bytes_max);
    std::vector<std::byte> plain;
    std::vector<std::byte> answer;
    std::vector<std::byte> bytes(as_byte_view(wire).begin(), as_byte_view(wire).end());
    EXPECT_EQ(peer.open(bytes, plain, answer), bytes.size());
    EXPECT_EQ(peer.failure(), "");
    return std::string(as_text(plain));
  }

  lightq::test::Random random_;
  Wire wire_;
  FakeOwner owner_;
  std::unique_ptr<Collector> connection_;
};

TEST_F(SealedConnectionTest, IsReadInOrderHoweverUnitsMessagesAndInputsAreCut) {
  start();
  connection_->pause_after = 7;
  std::vector<std::string> sent;
  std::string plain;
  for (int i = 0; i < 700; ++i) {
    const std::size_t bytes = random_.one_in(20) ? random_.below(400'000) : random_.below(300);
    sent.emplace_back(bytes, static_cast<char>('a' + i % 26));
    plain += message(sent.back());
  }
  std::string stream;
  for (std::size_t at = 0; at < plain.size();) {
    const std::size_t step = random_.one_in(3) ? random_.below(50) : random_.below(unit_bytes_max);
    stream += sealed(plain.substr(at, step));
    at += step;
  }
  const std::jthread writer([&] {
    for (std::size_t at = 0; at < stream.size();) {
      const std::size_t step = random_.one_in(3) ? random_.between(1, 20) : random_.between(1, 400'000);
      wire_.send(stream.substr(at, step));
      at += step;
    }
  });
  ASSERT_TRUE(wire_.run_until([&] {
    if (connection_->is_paused()) connection_->go_on();
    return connection_->messages.size() >= sent.size() || owner_.closed;
  })) << connection_->messages.size();
  EXPECT_EQ(connection_->messages, sent);
  EXPECT_FALSE(owner_.closed) << owner_.reason;
}

TEST_F(SealedConnectionTest, NothingIsReadWhilePausedAndNothingIsLost) {
  start();
  connection_->pause_after = 1;
  wire_.send(sealed(message("one") + message(std::string(30'000, 'x')) + message("three")));
  for (std::size_t count = 1; count <= 3; ++count) {
    ASSERT_TRUE(wire_.run_until([&] { return connection_->messages.size() >= count; }));
    EXPECT_EQ(connection_->messages.size(), count);
    connection_->go_on();
  }
  EXPECT_EQ(connection_->messages.back(), "three");
}

/// Uses a cipher that seals only by units, and one that declares to seal any bytes, directly from the
/// caller's memory.
class SealedOutputTest : public SealedConnectionTest, public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Ciphers, SealedOutputTest, testing::Bool());

TEST_P(SealedOutputTest, SentMessagesAreEncryptedAndCountedByTheUnit) {
  start(false, GetParam());
  connection_->say("hello, ");
  connection_->say_from_elsewhere("you ", "there");
  EXPECT_EQ(opened(wire_.received()), "hello, you there");
  EXPECT_EQ(connection_->buffer().sent_total(), std::string("hello, you there").size());

  std::string expected;
  std::string wire;
  for (int i = 0; i < 2'000; ++i) {
    const std::string text(random_.below(40'000), static_cast<char>('a' + i % 26));
    if (random_.one_in(2)) {
      connection_->say(text);
    } else {
      const std::size_t head = random_.below(text.size() + 1);
      connection_->say_from_elsewhere(text.substr(0, head), text.substr(head));
    }
    expected += text;
    ASSERT_EQ(connection_->buffer().appended_total(), 16 + expected.size());
    if (!random_.one_in(4)) continue;
    wire += wire_.received();
    ASSERT_LE(connection_->buffer().sent_total(), 16 + expected.size());
  }
  ASSERT_TRUE(wire_.run_until([&] {
    wire += wire_.received();
    return connection_->buffer().buffered() == 0;
  }));
  wire += wire_.received();
  EXPECT_EQ(opened(wire), expected);
}

TEST_F(SealedConnectionTest, AnIncompletelySentUnitDoesNotCountAsSent) {
  start();
  std::string expected;
  while (connection_->buffer().buffered() == 0) {
    connection_->say(std::string(unit_bytes_max, 'u'));
    expected += std::string(unit_bytes_max, 'u');
    ASSERT_LT(expected.size(), 100'000'000U);
  }
  EXPECT_EQ(connection_->buffer().sent_total() % unit_bytes_max, 0U);
  EXPECT_LT(connection_->buffer().sent_total(), expected.size());
}

TEST_F(SealedConnectionTest, OpensWhenTheCiphersHandshakeIsOver) {
  start(true);
  connection_->say("early");
  wire_.send("kno");
  EXPECT_FALSE(owner_.opened);
  wire_.send("ck" + sealed(message("first")));
  ASSERT_TRUE(wire_.run_until([&] { return !connection_->messages.empty(); }));
  EXPECT_TRUE(owner_.opened);
  EXPECT_EQ(connection_->messages.front(), "first");
  const std::string wire = wire_.received();
  ASSERT_EQ(wire.substr(0, 5), "enter");
  EXPECT_EQ(opened(wire.substr(5)), "early");
}

TEST_F(SealedConnectionTest, ClosesWhenTheHandshakeFailsOrDoesNotCome) {
  start(true);
  wire_.send("knick");
  ASSERT_TRUE(wire_.run_until([&] { return owner_.closed; }));
  EXPECT_THAT(owner_.reason, HasSubstr("does not knock"));
  EXPECT_FALSE(owner_.opened);
}

TEST_F(SealedConnectionTest, ASilentOneIsClosed) {
  start(true);
  ASSERT_TRUE(wire_.run_until([&] { return owner_.closed; }));
  EXPECT_THAT(owner_.reason, HasSubstr("no handshake within 1000 ms"));
}

TEST_F(SealedConnectionTest, MessagesBeforeTheFailureAreDelivered) {
  start();
  wire_.send(sealed(message("good")) + "nonsense");
  ASSERT_TRUE(wire_.run_until([&] { return owner_.closed; }));
  EXPECT_THAT(connection_->messages, testing::ElementsAre("good"));
  EXPECT_EQ(owner_.reason, "no unit");
}

}  // namespace
}  // namespace lightq::broker
