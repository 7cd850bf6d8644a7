/// Sets up OpenSSL for TLS 1.3, and makes keys and certificates. Layer: crypto.
#include "crypto/tls_context.hpp"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <array>
#include <cstddef>
#include <ctime>

#include <lightq/base/limits.hpp>

#include "crypto/tls_cipher.hpp"

namespace lightq::broker {

namespace {

template <auto free>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    free(object);
  }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Context = std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>>;
using TlsConnection = std::unique_ptr<SSL, Freed<SSL_free>>;

// The fastest of the three secure suites comes first.
constexpr const char* cipher_suites =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
// The date that RFC 5280 defines for a certificate without a well-defined expiration.
constexpr const char* without_end = "99991231235959Z";
// Certificates are valid from this date on, so that a wrong clock does no harm.
constexpr const char* long_ago = "20200101000000Z";
constexpr long version_3 = 2;

Error failed(std::string_view what, const char* otherwise) {
  return {ErrorCode::internal, std::string(what) + ": " + take_tls_error(otherwise)};
}

Error unreadable(std::string_view name, const char* what) {
  return {ErrorCode::corrupt,
          std::string(name) + " contains no " + what + " in PEM: " + take_tls_error("it cannot be read")};
}

Bio reader_of(std::string_view text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string written(BIO* from) {
  char* data = nullptr;
  const long bytes = BIO_get_mem_data(from, &data);
  return {data, static_cast<std::size_t>(bytes)};
}

/// Answers OpenSSL's request for a passphrase with an error. OpenSSL's own function would ask at the
/// terminal.
int no_passphrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

Result<Key> read_key(std::string_view text, std::string_view name) {
  bool asked = false;
  const Bio bio = reader_of(text);
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, &asked));
  if (key != nullptr) return key;
  if (!asked) return unreadable(name, "private key");
  ERR_clear_error();
  return Error{ErrorCode::invalid_argument,
               std::string(name) + " is encrypted with a passphrase; the broker needs a key without one"};
}

/// Loads the certificate and the certificates that follow it into `context`. Returns the first one.
Result<Certificate> take_certificates(SSL_CTX* context, const TlsTexts& texts) {
  const Bio bio = reader_of(texts.certificate);
  Certificate own(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (own == nullptr) return unreadable(texts.certificate_name, "certificate");
  if (SSL_CTX_use_certificate(context, own.get()) != 1)
    return Error{ErrorCode::invalid_argument, std::string(texts.certificate_name) +
                                                  " cannot be used: " + take_tls_error("OpenSSL refuses it")};
  while (Certificate next{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
    if (SSL_CTX_add1_chain_cert(context, next.get()) != 1)
      return Error{ErrorCode::invalid_argument, std::string(texts.certificate_name) +
                                                    " has an unusable certificate after the first: " +
                                                    take_tls_error("OpenSSL refuses it")};
  }
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  if (!at_end) return unreadable(texts.certificate_name, "whole chain of certificates");
  ERR_clear_error();
  return own;
}

std::string text_of(const ASN1_TIME* time) {
  const Bio bio(BIO_new(BIO_s_mem()));
  ASN1_TIME_print(bio.get(), time);
  return written(bio.get());
}

Result<void> check_time(const X509* certificate, std::string_view name, Timestamp now) {
  std::time_t seconds = now.us / 1'000'000;
  const ASN1_TIME* const from = X509_get0_notBefore(certificate);
  const ASN1_TIME* const until = X509_get0_notAfter(certificate);
  if (X509_cmp_time(from, &seconds) > 0)
    return Error{ErrorCode::invalid_argument,
                 std::string(name) + " is not valid yet: it begins at " + text_of(from)};
  if (X509_cmp_time(until, &seconds) < 0)
    return Error{ErrorCode::invalid_argument,
                 std::string(name) + " has expired: it ended at " + text_of(until)};
  return {};
}

std::string fingerprint_of(const X509* certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int bytes = 0;
  X509_digest(certificate, EVP_sha256(), digest.data(), &bytes);
  constexpr const char* hexadecimal = "0123456789abcdef";
  std::string text;
  for (unsigned int i = 0; i < bytes; ++i) {
    text += hexadecimal[digest[i] >> 4U];
    text += hexadecimal[digest[i] & 15U];
  }
  return text;
}

Result<Context> make_context(const SSL_METHOD* side) {
  Context made(SSL_CTX_new(side));
  if (made == nullptr) return failed("cannot set up TLS", "no context");
  SSL_CTX* const context = made.get();
  const bool set = SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
                   SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1 &&
                   SSL_CTX_set_ciphersuites(context, cipher_suites) == 1 &&
                   SSL_CTX_set_num_tickets(context, 0) == 1;
  if (!set) return failed("cannot set up TLS 1.3", "OpenSSL does not support it");
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_verify(context, SSL_VERIFY_NONE, nullptr);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);  // idle connections take little memory
  return made;
}

/// Performs a handshake with a client of this process. Error: invalid_argument, if no client of TLS 1.3 can
/// use the certificate. OpenSSL also loads keys for which TLS 1.3 has no signature algorithm.
Result<void> try_handshake(SSL_CTX* server_context, std::string_view certificate_name) {
  constexpr std::size_t pipe_bytes = 1 * limits::MiB;  // longer than any chain of certificates
  constexpr int flights_max = 8;
  auto client_context = make_context(TLS_client_method());
  if (!client_context) return client_context.error();
  const TlsConnection server(SSL_new(server_context));
  const TlsConnection client(SSL_new(client_context->get()));
  BIO* of_server = nullptr;
  BIO* of_client = nullptr;
  if (server == nullptr || client == nullptr ||
      BIO_new_bio_pair(&of_server, pipe_bytes, &of_client, pipe_bytes) != 1)
    return failed("cannot set up TLS", "no memory");
  SSL_set_bio(server.get(), of_server, of_server);
  SSL_set_bio(client.get(), of_client, of_client);
  SSL_set_accept_state(server.get());
  SSL_set_connect_state(client.get());
  for (int flight = 0; flight < flights_max; ++flight) {
    ERR_clear_error();
    SSL_do_handshake(client.get());
    ERR_clear_error();
    SSL_do_handshake(server.get());
    if (SSL_is_init_finished(client.get()) == 1 && SSL_is_init_finished(server.get()) == 1) {
      ERR_clear_error();
      return {};
    }
    if (ERR_peek_error() != 0) break;
  }
  return Error{ErrorCode::invalid_argument, std::string(certificate_name) + " cannot be used with TLS 1.3: " +
                                                take_tls_error("no client completes a handshake")};
}

bool set_name(X509* certificate) {
  X509_NAME* const name = X509_get_subject_name(certificate);
  const auto* const text = reinterpret_cast<const unsigned char*>("lightq");
  return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, text, -1, -1, 0) == 1 &&
         X509_set_issuer_name(certificate, name) == 1;
}

bool set_serial(X509* certificate) {
  std::array<unsigned char, 16> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) return false;
  bytes[0] &= 0x7F;  // makes the number positive
  bytes[0] |= 0x40;  // makes all numbers equally long
  const std::unique_ptr<BIGNUM, Freed<BN_free>> number(
      BN_bin2bn(bytes.data(), static_cast<int>(bytes.size()), nullptr));
  return number != nullptr && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool add_extension(X509* certificate, int kind, const char* value) {
  const std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>> made(
      X509V3_EXT_conf_nid(nullptr, nullptr, kind, value));
  return made != nullptr && X509_add_ext(certificate, made.get(), -1) == 1;
}

}  // namespace

std::string take_tls_error(const char* otherwise) {
  const unsigned long error = ERR_get_error();
  ERR_clear_error();
  const char* const reason = error == 0 ? nullptr : ERR_reason_error_string(error);
  return reason == nullptr ? otherwise : reason;
}

Result<std::unique_ptr<TlsContext>> TlsContext::make(const TlsTexts& texts, Timestamp now) {
  ERR_clear_error();
  auto context = make_context(TLS_server_method());
  if (!context) return context.error();
  auto certificate = take_certificates(context->get(), texts);
  if (!certificate) return certificate.error();
  if (auto checked = check_time(certificate->get(), texts.certificate_name, now); !checked)
    return checked.error();
  auto key = read_key(texts.key, texts.key_name);
  if (!key) return key.error();
  if (X509_check_private_key(certificate->get(), key->get()) != 1) {
    ERR_clear_error();
    return Error{ErrorCode::invalid_argument,
                 std::string(texts.key_name) + " is not the key of " + std::string(texts.certificate_name)};
  }
  if (SSL_CTX_use_PrivateKey(context->get(), key->get()) != 1)
    return Error{ErrorCode::invalid_argument,
                 std::string(texts.key_name) + " cannot be used: " + take_tls_error("OpenSSL refuses it")};
  if (auto usable = try_handshake(context->get(), texts.certificate_name); !usable) return usable.error();
  bio_method_st* const method = TlsCipher::make_method();
  if (method == nullptr) return failed("cannot set up TLS", "no memory");
  return std::unique_ptr<TlsContext>(new TlsContext(
      std::make_shared<const TlsIdentity>(context->release(), method, fingerprint_of(certificate->get()))));
}

TlsIdentity::~TlsIdentity() {
  SSL_CTX_free(context);
  BIO_meth_free(method);
}

Result<Secret> make_tls_key() {
  ERR_clear_error();
  const Key key(EVP_EC_gen("P-256"));
  const Bio bio(BIO_new(BIO_s_secmem()));
  if (key == nullptr || bio == nullptr ||
      PEM_write_bio_PrivateKey(bio.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return failed("cannot create a TLS key", "no memory");
  }
  return Secret(written(bio.get()));
}

Result<std::string> make_tls_certificate(std::string_view key_text, std::string_view key_name) {
  ERR_clear_error();
  auto key = read_key(key_text, key_name);
  if (!key) return key.error();
  const Certificate made(X509_new());
  const Bio bio(BIO_new(BIO_s_mem()));
  X509* const certificate = made.get();
  const bool is_made =
      certificate != nullptr && bio != nullptr && X509_set_version(certificate, version_3) == 1 &&
      set_serial(certificate) && set_name(certificate) &&
      ASN1_TIME_set_string(X509_getm_notBefore(certificate), long_ago) == 1 &&
      ASN1_TIME_set_string(X509_getm_notAfter(certificate), without_end) == 1 &&
      X509_set_pubkey(certificate, key->get()) == 1 &&
      add_extension(certificate, NID_basic_constraints, "critical,CA:FALSE") &&
      add_extension(certificate, NID_key_usage, "critical,digitalSignature") &&
      add_extension(certificate, NID_ext_key_usage, "serverAuth") &&
      X509_sign(certificate, key->get(),
                EVP_PKEY_get_id(key->get()) == EVP_PKEY_ED25519 ? nullptr : EVP_sha256()) > 0 &&
      PEM_write_bio_X509(bio.get(), certificate) == 1;
  if (!is_made) return failed("cannot create a TLS certificate", "no memory");
  return written(bio.get());
}

}  // namespace lightq::broker
