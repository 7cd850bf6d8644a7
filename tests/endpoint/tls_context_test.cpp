/// Tests of the certificate that the broker presents to sessions over TCP.
#include "crypto/tls_context.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <string>

#include "support/planted.hpp"

namespace lightq::broker {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr Timestamp now{1'800'000'000'000'000};
constexpr Timestamp before_2020{1'500'000'000'000'000};

std::string written(BIO* bio) {
  char* data = nullptr;
  const long bytes = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<std::size_t>(bytes));
  BIO_free(bio);
  return text;
}

EVP_PKEY* parsed(const std::string& key) {
  BIO* const bio = BIO_new_mem_buf(key.data(), static_cast<int>(key.size()));
  EVP_PKEY* const made = PEM_read_bio_PrivateKey(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  return made;
}

/// Returns a certificate like that of another authority, valid from `from` to `until`.
std::string certificate_of(const std::string& key, const char* from, const char* until) {
  EVP_PKEY* const pair = parsed(key);
  X509* const certificate = X509_new();
  ASN1_TIME_set_string(X509_getm_notBefore(certificate), from);
  ASN1_TIME_set_string(X509_getm_notAfter(certificate), until);
  X509_set_pubkey(certificate, pair);
  X509_sign(certificate, pair, EVP_sha256());
  BIO* const bio = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(bio, certificate);
  X509_free(certificate);
  EVP_PKEY_free(pair);
  return written(bio);
}

std::string encrypted(const std::string& key) {
  EVP_PKEY* const pair = parsed(key);
  BIO* const bio = BIO_new(BIO_s_mem());
  PEM_write_bio_PKCS8PrivateKey(bio, pair, EVP_aes_256_cbc(), planted::file_password,
                                static_cast<int>(std::string_view(planted::file_password).size()), nullptr,
                                nullptr);
  EVP_PKEY_free(pair);
  return written(bio);
}

class TlsContextTest : public testing::Test {
 protected:
  [[nodiscard]] static Error failure(const std::string& certificate, const std::string& key) {
    const auto made = TlsContext::make({certificate, key, "C.pem", "K.pem"}, now);
    EXPECT_FALSE(made.ok());
    return made.ok() ? Error{} : made.error();
  }
  const std::string key = make_tls_key().value_or_throw().expose();
  const std::string certificate = make_tls_certificate(key).value_or_throw();
};

TEST_F(TlsContextTest, IsCreatedFromItsOwnKeyAndCertificate) {
  EXPECT_THAT(key, StartsWith("-----BEGIN PRIVATE KEY-----"));
  EXPECT_THAT(certificate, StartsWith("-----BEGIN CERTIFICATE-----"));
  const auto made = TlsContext::make({certificate, key}, now).value_or_throw();
  EXPECT_EQ(made->fingerprint().size(), 64U);
  EXPECT_EQ(made->fingerprint().find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(TlsContext::make({certificate, key}, now).value_or_throw()->fingerprint(), made->fingerprint());
}

TEST_F(TlsContextTest, TwoCertificatesDiffer) {
  const std::string other = make_tls_certificate(key).value_or_throw();
  EXPECT_NE(TlsContext::make({certificate, key}, now).value_or_throw()->fingerprint(),
            TlsContext::make({other, key}, now).value_or_throw()->fingerprint());
  EXPECT_NE(key, make_tls_key().value_or_throw().expose());
}

TEST_F(TlsContextTest, ItsOwnCertificateDoesNotExpire) {
  EXPECT_TRUE(TlsContext::make({certificate, key}, Timestamp{200'000'000'000'000'000}).ok());
  const auto early = TlsContext::make({certificate, key}, before_2020);
  ASSERT_FALSE(early.ok());
  EXPECT_THAT(early.error().message, HasSubstr("is not valid yet: it begins at Jan  1 00:00:00 2020"));
}

TEST_F(TlsContextTest, AnInvalidCertificateIsNamed) {
  for (const std::string& text :
       {std::string(), std::string("hello"), key, certificate.substr(0, 200),
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n" + certificate}) {
    const Error error = failure(text, key);
    EXPECT_EQ(error.code, ErrorCode::corrupt) << text;
    EXPECT_THAT(error.message, StartsWith("C.pem contains no "));
  }
}

TEST_F(TlsContextTest, AnInvalidKeyIsNamed) {
  for (const std::string& text : {std::string(), std::string("hello"), certificate, key.substr(0, 100)}) {
    const Error error = failure(certificate, text);
    EXPECT_EQ(error.code, ErrorCode::corrupt) << text;
    EXPECT_THAT(error.message, StartsWith("K.pem contains no private key in PEM: "));
  }
}

TEST_F(TlsContextTest, AKeyWithAPassphraseIsRefusedWithoutAskingForIt) {
  const Error error = failure(certificate, encrypted(key));
  EXPECT_EQ(error.code, ErrorCode::invalid_argument);
  EXPECT_THAT(error.message, StartsWith("K.pem is encrypted with a passphrase"));
}

TEST_F(TlsContextTest, TheKeyOfAnotherCertificateIsRefused) {
  const Error error = failure(certificate, make_tls_key().value_or_throw().expose());
  EXPECT_EQ(error.code, ErrorCode::invalid_argument);
  EXPECT_EQ(error.message, "K.pem is not the key of C.pem");
}

TEST_F(TlsContextTest, AKeyThatTls13CannotUseIsRefused) {
  for (const char* curve : {"secp256k1", "P-224"}) {
    EVP_PKEY* const pair = EVP_EC_gen(curve);
    ASSERT_NE(pair, nullptr) << curve;
    BIO* const bio = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(bio, pair, nullptr, nullptr, 0, nullptr, nullptr);
    EVP_PKEY_free(pair);
    const std::string other = written(bio);
    const Error error = failure(make_tls_certificate(other).value_or_throw(), other);
    EXPECT_EQ(error.code, ErrorCode::invalid_argument) << curve;
    EXPECT_THAT(error.message, StartsWith("C.pem cannot be used with TLS 1.3: ")) << curve;
  }
}

TEST_F(TlsContextTest, ACertificateOutOfItsTimeIsRefused) {
  const Error old = failure(certificate_of(key, "20200101000000Z", "20210101000000Z"), key);
  EXPECT_EQ(old.code, ErrorCode::invalid_argument);
  EXPECT_THAT(old.message, StartsWith("C.pem has expired: it ended at Jan  1 00:00:00 2021"));
  const Error young = failure(certificate_of(key, "20400101000000Z", "20410101000000Z"), key);
  EXPECT_EQ(young.code, ErrorCode::invalid_argument);
  EXPECT_THAT(young.message, StartsWith("C.pem is not valid yet: it begins at Jan  1 00:00:00 2040"));
}

TEST_F(TlsContextTest, TheFirstCertificateOfAChainIsTheBrokers) {
  const std::string above = make_tls_certificate(make_tls_key().value_or_throw().expose()).value_or_throw();
  const auto alone = TlsContext::make({certificate, key}, now).value_or_throw();
  const auto chain = TlsContext::make({certificate + above, key}, now).value_or_throw();
  EXPECT_EQ(chain->fingerprint(), alone->fingerprint());
  EXPECT_EQ(failure(above + certificate, key).message, "K.pem is not the key of C.pem");
  EXPECT_THAT(failure(certificate + above.substr(0, 100) + "\n", key).message,
              HasSubstr("no whole chain of certificates"));
}

}  // namespace
}  // namespace lightq::broker
