/// Tests of the broker's end of TLS: opening, sealing, and the faults that end a connection.
#include "crypto/tls_cipher.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tls_peer.hpp"

namespace lightq::broker {
namespace {

using lightq::test::TlsPeer;
using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

using Bytes = std::vector<std::byte>;

constexpr Timestamp now{1'800'000'000'000'000};
constexpr std::size_t record_bytes = 16'384;
constexpr auto alert = std::byte{21};

std::unique_ptr<TlsContext> new_context() {
  const std::string key = make_tls_key().value_or_throw().expose();
  const std::string certificate = make_tls_certificate(key).value_or_throw();
  return TlsContext::make({certificate, key}, now).value_or_throw();
}

const TlsContext& context() {
  static const auto made = new_context();
  return *made;
}

Bytes bytes_of(std::string_view text) {
  const ByteView view = as_byte_view(text);
  return {view.begin(), view.end()};
}

/// Returns text that does not compress or repeat.
std::string text_of(std::size_t bytes, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::string text(bytes, '\0');
  std::generate(text.begin(), text.end(), [&] { return static_cast<char>(random()); });
  return text;
}

/// The cipher, driven as a connection drives it.
struct Broker {
  explicit Broker(std::uint64_t records_per_key_max = limits::tls_records_per_key_max)
      : cipher(context(), records_per_key_max) {}
  explicit Broker(const TlsContext& of) : cipher(of) {}

  /// Receives `wire` in pieces of `step` bytes. Returns the bytes to send in reply.
  Bytes hear(Bytes wire, std::size_t step = SIZE_MAX) {
    Bytes answer;
    for (std::size_t at = 0; at < wire.size();) {
      const std::size_t piece = std::min(step, wire.size() - at);
      EXPECT_EQ(cipher.open(std::span(wire).subspan(at, piece), plain, answer), piece);
      at += piece;
    }
    return answer;
  }
  [[nodiscard]] std::string heard() const { return std::string(as_text(plain)); }
  Bytes say(std::string_view text) {
    Bytes wire;
    for (ByteView left = as_byte_view(text); !left.empty();) {
      const std::size_t sealed = cipher.seal(left, wire);
      if (sealed == 0) break;
      left = left.subspan(sealed);
    }
    return wire;
  }

  TlsCipher cipher;
  Bytes plain;
};

/// Exchanges bytes until neither side has any left.
void talk(TlsPeer& peer, Broker& broker, std::size_t step = SIZE_MAX) {
  peer.hear({});
  for (Bytes said = peer.says(); !said.empty(); said = peer.says()) peer.hear(broker.hear(said, step));
}

TEST(TlsCipher, OpensAndSealsAfterTheHandshake) {
  TlsPeer peer;
  Broker broker;
  EXPECT_FALSE(broker.cipher.ready());
  EXPECT_THAT(broker.say("too early"), IsEmpty());
  talk(peer, broker);
  ASSERT_TRUE(broker.cipher.ready() && peer.connected());
  EXPECT_EQ(SSL_version(peer.ssl()), TLS1_3_VERSION);
  peer.send("hello");
  EXPECT_THAT(broker.hear(peer.says()), IsEmpty());
  EXPECT_EQ(broker.heard(), "hello");
  const Bytes wire = broker.say("welcome");
  EXPECT_EQ(std::string(as_text(wire)).find("welcome"), std::string::npos);
  peer.hear(wire);
  EXPECT_EQ(peer.heard, "welcome");
  EXPECT_EQ(broker.cipher.failure(), "");
}

TEST(TlsCipher, ShowsTheCertificateThatItsContextNames) {
  TlsPeer peer;
  Broker broker;
  talk(peer, broker);
  X509* const shown = SSL_get1_peer_certificate(peer.ssl());
  ASSERT_NE(shown, nullptr);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int bytes = 0;
  X509_digest(shown, EVP_sha256(), digest, &bytes);
  X509_free(shown);
  std::string text;
  for (unsigned int i = 0; i < bytes; ++i) {
    constexpr const char* digits = "0123456789abcdef";
    text += {digits[digest[i] / 16], digits[digest[i] % 16]};
  }
  EXPECT_EQ(text, context().fingerprint());
}

TEST(TlsCipher, KeepsItsCertificateWhenTheContextIsRenewedAndGone) {
  auto renewed = new_context();
  const std::string before = renewed->fingerprint();
  TlsPeer peer;
  Broker broker(*renewed);
  talk(peer, broker);
  ASSERT_TRUE(broker.cipher.ready() && peer.connected());
  renewed->renew(context());
  EXPECT_NE(renewed->fingerprint(), before);
  EXPECT_EQ(renewed->fingerprint(), context().fingerprint());
  TlsPeer late_peer;
  Broker late(*renewed);
  renewed.reset();
  talk(late_peer, late);
  ASSERT_TRUE(late.cipher.ready() && late_peer.connected());
  peer.send("hello");
  EXPECT_THAT(broker.hear(peer.says()), IsEmpty());
  EXPECT_EQ(broker.heard(), "hello");
}

TEST(TlsCipher, HearsOneByteAtATime) {
  TlsPeer peer;
  Broker broker;
  talk(peer, broker, 1);
  ASSERT_TRUE(broker.cipher.ready() && peer.connected());
  const std::string text = text_of(40'000);
  peer.send(text);
  EXPECT_THAT(broker.hear(peer.says(), 1), IsEmpty());
  EXPECT_EQ(broker.heard(), text);
}

TEST(TlsCipher, CarriesEverySizeAroundARecord) {
  TlsPeer peer;
  Broker broker;
  talk(peer, broker);
  std::string said;
  for (const std::size_t bytes : {1UL, 2UL, 15UL, 16UL, 17UL, 255UL, 256UL, 4095UL, record_bytes - 1,
                                  record_bytes, record_bytes + 1, 3 * record_bytes, 100'001UL}) {
    const std::string text = text_of(bytes, static_cast<unsigned>(bytes));
    said += text;
    peer.send(text);
    broker.hear(peer.says(), 1000);
    ASSERT_EQ(broker.heard(), said) << bytes;
    peer.hear(broker.say(text));
    ASSERT_EQ(peer.heard, said) << bytes;
  }
}

TEST(TlsCipher, SealsAtMostARecordAtATime) {
  TlsPeer peer;
  Broker broker;
  talk(peer, broker);
  const std::string text = text_of(record_bytes + 100);
  Bytes wire;
  EXPECT_EQ(broker.cipher.seal(as_byte_view(text), wire), record_bytes);
  EXPECT_LT(wire.size(), record_bytes + 300);
  EXPECT_EQ(broker.cipher.seal(as_byte_view(text).subspan(record_bytes), wire), 100U);
  EXPECT_EQ(broker.cipher.seal({}, wire), 0U);
  peer.hear(wire);
  EXPECT_EQ(peer.heard, text);
}

TEST(TlsCipher, TransfersMuchBothWaysWithKeyUpdates) {
  TlsPeer peer;
  Broker broker(3);
  talk(peer, broker);
  const std::string text = text_of(10 * 1024 * 1024);
  for (std::size_t at = 0; at < text.size(); at += 1024 * 1024) {
    const std::string_view part = std::string_view(text).substr(at, 1024 * 1024);
    peer.send(part);
    if (at % (2 * 1024 * 1024) == 0) SSL_key_update(peer.ssl(), SSL_KEY_UPDATE_REQUESTED);
    peer.hear(broker.hear(peer.says(), 70'000));
    peer.hear(broker.say(part));
  }
  EXPECT_TRUE(broker.heard() == text);
  EXPECT_TRUE(peer.heard == text);
  EXPECT_EQ(broker.cipher.failure() + peer.error, "");
}

/// Each key change adds one message to the wire.
TEST(TlsCipher, ChangesItsKeyAfterSoManyRecords) {
  TlsPeer peer;
  Broker broker(2);
  talk(peer, broker);
  std::vector<std::size_t> sizes;
  for (int i = 0; i < 6; ++i) {
    const Bytes wire = broker.say("record");
    sizes.push_back(wire.size());
    peer.hear(wire);
  }
  EXPECT_EQ(peer.heard, "recordrecordrecordrecordrecordrecord");
  EXPECT_EQ(sizes[0], sizes[1]);
  EXPECT_GT(sizes[2], sizes[0]);
  EXPECT_EQ(sizes[3], sizes[0]);
  EXPECT_EQ(sizes[4], sizes[2]);
}

TEST(TlsCipher, RefusesOlderVersionsWithAnAlert) {
  for (const int version : {TLS1_VERSION, TLS1_1_VERSION, TLS1_2_VERSION}) {
    TlsPeer peer(version, version);
    SSL_set_security_level(peer.ssl(), 0);
    SSL_set_cipher_list(peer.ssl(), "ALL:@SECLEVEL=0");
    Broker broker;
    talk(peer, broker);
    EXPECT_FALSE(broker.cipher.ready());
    EXPECT_THAT(broker.cipher.failure(), AllOf(StartsWith("TLS: "), HasSubstr("unsupported protocol")));
    EXPECT_THAT(peer.error, HasSubstr("alert protocol version"));
  }
}

TEST(TlsCipher, FailsOnDataThatIsNotTls) {
  for (const std::string& text :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(100, '\0'), std::string(100, '\xff'),
        text_of(50'000), std::string("\x16\x03\x01\x00\x05hello hello", 16),
        std::string("\x15\x03\x03\x00\x02\x02\x28", 7), std::string("\x17\x03\x03\x00\x08yes, yes", 13),
        std::string("\x16\x03\x03\xff\xff") + text_of(70'000)}) {
    Broker broker;
    const Bytes answer = broker.hear(bytes_of(text), 100);
    EXPECT_THAT(broker.cipher.failure(), StartsWith("TLS: the handshake failed: "));
    if (!answer.empty()) {
      EXPECT_EQ(answer[0], alert);
    }
    EXPECT_THAT(broker.heard(), IsEmpty());
    EXPECT_EQ(ERR_peek_error(), 0UL);
    // The cipher stays in this state.
    EXPECT_THAT(broker.hear(bytes_of("more")), IsEmpty());
    EXPECT_THAT(broker.say("more"), IsEmpty());
  }
}

TEST(TlsCipher, AnyChangedByteOfTheHandshakeEndsIt) {
  TlsPeer whole;
  whole.hear({});
  const std::size_t hello_bytes = whole.says().size();
  for (std::size_t at = 0; at < hello_bytes; at += 3) {
    TlsPeer peer;
    Broker broker;
    peer.hear({});
    Bytes hello = peer.says();
    ASSERT_EQ(hello.size(), hello_bytes);
    hello[at] ^= std::byte{0x40};
    peer.hear(broker.hear(hello));
    peer.hear(broker.hear(peer.says()));
    // The transcript reveals the change: one side has noticed it, or waits for bytes that will not come.
    EXPECT_FALSE(broker.cipher.ready()) << at;
    EXPECT_THAT(broker.heard(), IsEmpty());
  }
}

TEST(TlsCipher, AChangedRecordEndsIt) {
  for (const std::size_t at : {0U, 1U, 5U, 10U, 30U}) {
    TlsPeer peer;
    Broker broker;
    talk(peer, broker);
    peer.send("first");
    broker.hear(peer.says());
    peer.send("second message");
    Bytes record = peer.says();
    record.at(at) ^= std::byte{1};
    const Bytes answer = broker.hear(record);
    EXPECT_THAT(broker.cipher.failure(), StartsWith("TLS: the connection failed: ")) << at;
    EXPECT_EQ(broker.heard(), "first");
    peer.hear(answer);
    EXPECT_THAT(peer.error, HasSubstr("alert")) << at;
  }
}

TEST(TlsCipher, ATooLongRecordEndsIt) {
  TlsPeer peer;
  Broker broker;
  talk(peer, broker);
  Bytes record = bytes_of(std::string("\x17\x03\x03\x48\x00", 5) + text_of(record_bytes));
  peer.hear(broker.hear(record));
  EXPECT_THAT(broker.cipher.failure(), HasSubstr("length too long"));
  EXPECT_THAT(peer.error, HasSubstr("record overflow"));
}

TEST(TlsCipher, WaitsForAnIncompleteRecordInLimitedMemory) {
  TlsPeer peer;
  Broker broker;
  talk(peer, broker);
  peer.send(text_of(record_bytes));
  Bytes record = peer.says();
  const Bytes last(record.end() - 1, record.end());
  record.pop_back();
  EXPECT_THAT(broker.hear(record, 7), IsEmpty());
  EXPECT_THAT(broker.heard(), IsEmpty());
  EXPECT_EQ(broker.cipher.failure(), "");
  broker.hear(last);
  EXPECT_EQ(broker.plain.size(), record_bytes);
}

TEST(TlsCipher, ReturnsBytesSentBeforeTheEnd) {
  TlsPeer peer;
  Broker broker;
  talk(peer, broker);
  peer.send("last words");
  SSL_shutdown(peer.ssl());
  peer.hear(broker.hear(peer.says()));
  EXPECT_EQ(broker.heard(), "last words");
  EXPECT_EQ(broker.cipher.failure(), "closed by the peer");
  EXPECT_TRUE(peer.ended);
}

TEST(TlsCipher, EndsWithAPeerThatChangesItsKeyWithoutEnd) {
  TlsPeer peer;
  Broker broker;
  talk(peer, broker);
  std::size_t answered = 0;
  for (int i = 0; i < 1000 && broker.cipher.failure().empty(); ++i) {
    SSL_key_update(peer.ssl(), SSL_KEY_UPDATE_REQUESTED);
    SSL_do_handshake(peer.ssl());
    const Bytes answer = broker.hear(peer.says());
    answered += answer.size();
    peer.hear(answer);
    if (i % 10 == 0) peer.send("a word between");  // does not reset the limit
  }
  EXPECT_THAT(broker.cipher.failure(), HasSubstr("updates its key too often"));
  EXPECT_LE(answered, limits::tls_answer_bytes_max + 100);
}

TEST(TlsCipher, PermitsAPeerToUpdateItsKeyWhileItSends) {
  TlsPeer peer;
  Broker broker;
  talk(peer, broker);
  const std::string text = text_of(50'000);
  constexpr std::size_t times = 1000;
  for (std::size_t i = 0; i < times; ++i) {
    SSL_key_update(peer.ssl(), SSL_KEY_UPDATE_REQUESTED);
    peer.send(text);
    peer.hear(broker.hear(peer.says()));
  }
  EXPECT_EQ(broker.cipher.failure() + peer.error, "");
  EXPECT_EQ(broker.plain.size(), times * text.size());
}

TEST(TlsCipher, SendsNoSessionTicketsAndAcceptsNoEarlyData) {
  TlsPeer peer;
  Broker broker;
  peer.hear({});
  const Bytes flight = broker.hear(peer.says());
  peer.hear(flight);
  const Bytes after = broker.hear(peer.says());
  ASSERT_TRUE(broker.cipher.ready());
  EXPECT_THAT(after, IsEmpty()) << "a ticket would come here";
  EXPECT_EQ(SSL_SESSION_is_resumable(SSL_get_session(peer.ssl())), 0);
  EXPECT_EQ(SSL_SESSION_get_max_early_data(SSL_get_session(peer.ssl())), 0U);
}

TEST(TlsCipher, AnyGarbageAfterTheHandshakeEndsIt) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    TlsPeer peer;
    Broker broker;
    talk(peer, broker);
    broker.hear(bytes_of(text_of(20'000, seed)), 1 + seed * 100);
    EXPECT_THAT(broker.cipher.failure(), StartsWith("TLS: the connection failed: ")) << seed;
    EXPECT_THAT(broker.heard(), IsEmpty());
  }
}

}  // namespace
}  // namespace lightq::broker
