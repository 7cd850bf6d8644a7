/// Tests of the self-check that sessions refuse unauthenticated peers: which sessions pass it, and which
/// fail.
#include "session/session_proof.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "access/client_keys.hpp"

namespace lightq::broker {
namespace {

using testing::HasSubstr;

class SessionProofTest : public testing::Test {
 protected:
  [[nodiscard]] SessionProof proof() const {
    SessionProof made{{}, {}, tickets_, [this] { return time_; }};
    made.endpoints.advertise_host = "127.0.0.1";
    return made;
  }
  /// Returns the check of a broker that encrypts.
  [[nodiscard]] SessionProof encrypted() const {
    SessionProof made = proof();
    made.endpoints.curve_key = &server_;
    made.endpoints.client_keys = &keys_;
    made.sessions.tls = tls().get();
    return made;
  }
  static const std::unique_ptr<TlsContext>& tls() {
    static const auto made = [] {
      const std::string key = make_tls_key().value_or_throw();
      const std::string certificate = make_tls_certificate(key).value_or_throw();
      return TlsContext::make({certificate, key}, Timestamp{1'800'000'000'000'000}).value_or_throw();
    }();
    return made;
  }
  /// Returns the error text of the check, or an empty text if the check passes.
  std::string said(const SessionProof& of, const CurveKeyPair* encrypted_by = nullptr) {
    const auto proven = prove_session_gates(of, tickets_, encrypted_by);
    EXPECT_TRUE(proven.ok() || proven.error().code == ErrorCode::internal);
    return proven ? std::string() : proven.error().text();
  }

  const Timestamp time_{1'800'000'000'000'000};
  const TicketKey tickets_{TicketKey::random_bytes()};
  const CurveKeyPair server_;
  const ClientKeys keys_;
};

TEST_F(SessionProofTest, SessionsThatRefuseUnauthenticatedPeersPassWithAndWithoutEncryption) {
  EXPECT_EQ(said(proof()), "");
  EXPECT_EQ(said(encrypted(), &server_), "");
}

TEST_F(SessionProofTest, SessionsThatAdmitUnauthenticatedPeersFail) {
  SessionProof late = proof();
  int looks = 0;  // the clock jumps back after the tickets have been made
  late.now = [&] { return looks++ == 0 ? time_ : Timestamp{time_.us - 7'200'000'000}; };
  EXPECT_THAT(said(late), HasSubstr("sessions over TCP admit a client with a ticket that has expired"));
  SessionProof of_anybody = proof();
  of_anybody.access.put_user({~std::uint64_t{0}, 1, true, {}});
  EXPECT_THAT(said(of_anybody), HasSubstr("admit a client of a user who has lost the right"));
  SessionProof of_old_password = proof();
  of_old_password.access.set_admin_generation(1);
  EXPECT_THAT(said(of_old_password), HasSubstr("with a ticket of another administrator's password"));
  SessionProof encrypted_of_anybody = encrypted();
  encrypted_of_anybody.access.put_user({~std::uint64_t{0}, 1, true, {}});
  EXPECT_THAT(said(encrypted_of_anybody, &server_),
              HasSubstr("admit a client of a user who has lost the right"));
}

TEST_F(SessionProofTest, SessionsThatRefuseAValidTicketFail) {
  const TicketKey other(TicketKey::random_bytes());
  const SessionProof of_other_tickets{{}, {}, other, [this] { return time_; }};
  EXPECT_EQ(said(of_other_tickets), "sessions over TCP refuse a client with a good ticket");
}

TEST_F(SessionProofTest, SessionsThatAcceptUnencryptedPeersFail) {
  SessionProof without_tls = encrypted();
  without_tls.sessions.tls = nullptr;
  EXPECT_THAT(said(without_tls, &server_),
              HasSubstr("sessions over TCP admit a client that does not encrypt, with a good ticket"));
  SessionProof without_curve = encrypted();
  without_curve.endpoints.curve_key = nullptr;
  EXPECT_THAT(said(without_curve, &server_),
              HasSubstr("sessions over ZeroMQ admit a client that does not encrypt, with a good ticket"));
}

TEST_F(SessionProofTest, SessionsThatEncryptWithAnotherKeyFail) {
  const CurveKeyPair another;
  EXPECT_THAT(said(encrypted(), &another),
              HasSubstr("sessions over ZeroMQ refuse a client with a good ticket"));
}

}  // namespace
}  // namespace lightq::broker
