/// The certificate and the TLS settings of sessions over TCP. Layer: crypto.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <lightq/base/result.hpp>
#include <lightq/base/secret.hpp>
#include <lightq/base/types.hpp>

struct bio_method_st;
struct ssl_ctx_st;

namespace lightq::broker {

/// A certificate chain (the broker's own first, then its issuers') and the private key, as PEM texts, with
/// their names for errors.
struct TlsTexts {
  std::string_view certificate;
  std::string_view key;
  std::string_view certificate_name = "the certificate";
  std::string_view key_name = "the key";
};

/// The objects of OpenSSL for the connections of one certificate. Immutable. Thread: any.
struct TlsIdentity {
  TlsIdentity(ssl_ctx_st* owned_context, bio_method_st* owned_method, std::string sha256)
      : context(owned_context), method(owned_method), fingerprint(std::move(sha256)) {}
  TlsIdentity(const TlsIdentity&) = delete;
  TlsIdentity& operator=(const TlsIdentity&) = delete;
  ~TlsIdentity();

  ssl_ctx_st* const context;
  bio_method_st* const method;  ///< the functions by which OpenSSL reads and writes, for TlsCipher
  const std::string fingerprint;
};

/// Owns OpenSSL's context for all TLS connections of the broker. Allows only TLS 1.3: no older version, no
/// renegotiation, no compression, no TLS session tickets, no early data. `renew` replaces the certificate and
/// its key for new connections. Thread: any.
class TlsContext {
 public:
  /// Makes a context. Errors: corrupt (a text is not PEM, or lacks its certificate or key);
  /// invalid_argument (`now` is outside the certificate's time; the key has a passphrase, or belongs to
  /// another certificate; OpenSSL refuses one of them, or cannot use them for TLS 1.3); internal (OpenSSL
  /// cannot be set up).
  static Result<std::unique_ptr<TlsContext>> make(const TlsTexts& texts, Timestamp now);
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  /// Returns the SHA-256 of the certificate in DER, as 64 hexadecimal digits. A client identifies the broker
  /// by it.
  [[nodiscard]] std::string fingerprint() const { return identity()->fingerprint; }
  /// Returns the objects for a new connection, which keeps them until its end.
  [[nodiscard]] std::shared_ptr<const TlsIdentity> identity() const {
    const std::lock_guard lock(mutex_);
    return identity_;
  }
  /// Uses the certificate and the key of `other` for new connections. Existing connections keep theirs.
  void renew(const TlsContext& other) {
    auto newer = other.identity();
    const std::lock_guard lock(mutex_);
    identity_.swap(newer);
  }

 private:
  explicit TlsContext(std::shared_ptr<const TlsIdentity> identity) : identity_(std::move(identity)) {}

  mutable std::mutex mutex_;
  std::shared_ptr<const TlsIdentity> identity_;  // guarded by mutex_
};

/// Makes a private key (ECDSA, P-256) and returns it as a PEM text. Error: internal.
Result<Secret> make_tls_key();
/// Makes a certificate for `key`, self-signed and without a date of expiry, and returns it as a PEM text.
/// Errors: corrupt (`key` is no key), invalid_argument (`key` has a passphrase), internal.
Result<std::string> make_tls_certificate(std::string_view key, std::string_view key_name = "the key");
/// Returns the text of this thread's oldest OpenSSL error, or `otherwise` if there is none. Clears all
/// errors.
std::string take_tls_error(const char* otherwise);

}  // namespace lightq::broker
