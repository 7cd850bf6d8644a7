/// The certificate that sessions over TCP are shown, and how TLS is spoken behind it. Layer: endpoint.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

struct bio_method_st;
struct ssl_ctx_st;

namespace lightq::broker {

/// A certificate (the broker's first, those that vouch for it behind) and its private key, as PEM texts, with
/// what to call them in errors.
struct TlsTexts {
  std::string_view certificate;
  std::string_view key;
  std::string_view certificate_name = "the certificate";
  std::string_view key_name = "the key";
};

/// TLS 1.3 and nothing else: no older version, no renegotiation, no compression, no tickets of its own, no
/// early data. Immutable; any thread.
class TlsContext {
 public:
  /// Errors: corrupt (no PEM, or not what it should be), invalid_argument (`now` is not in the certificate's
  /// time, the key is another one's or wants a passphrase).
  static Result<std::unique_ptr<TlsContext>> make(const TlsTexts& texts, Timestamp now);
  /// A client's side, which believes every certificate: for who proves what the broker's own side does.
  /// Error: internal.
  static Result<std::unique_ptr<TlsContext>> make_client();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;
  ~TlsContext();

  /// SHA-256 of the certificate as DER, 64 hexadecimal digits: by this a client knows the broker.
  [[nodiscard]] const std::string& fingerprint() const { return fingerprint_; }
  /// For TlsCipher; remain this object's.
  [[nodiscard]] ssl_ctx_st* native() const { return native_; }
  [[nodiscard]] const bio_method_st* method() const { return method_; }
  /// Its connections speak first.
  [[nodiscard]] bool is_client() const { return is_client_; }

 private:
  TlsContext(ssl_ctx_st* native, bio_method_st* method, bool is_client)
      : native_(native), method_(method), is_client_(is_client) {}

  ssl_ctx_st* const native_;
  bio_method_st* const method_;
  const bool is_client_;
  std::string fingerprint_;
};

/// A new private key (ECDSA, P-256) as a PEM text, which the caller wipes. Error: internal.
Result<std::string> make_tls_key();
/// A certificate for this key, signed with it, without a date of expiry, as a PEM text. Errors: corrupt (no
/// key), internal.
Result<std::string> make_tls_certificate(std::string_view key, std::string_view key_name = "the key");
/// What OpenSSL's oldest error of this thread says; else `otherwise`. Clears them all.
std::string take_tls_error(const char* otherwise);

}  // namespace lightq::broker
