/// A nonblocking TCP socket that speaks TLS 1.3 with the one broker that has a known certificate.
/// docs/session.md, "TLS". Layer: client.
#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>
#include <lightq/detail/session_socket.hpp>
#include <lightq/detail/session_wire.hpp>

namespace lightq::inline v1 {

/// The client's end of an encrypted connection. Sends no data of the session before the other side has proved
/// that it has the certificate's key. No call waits, except for the name server in `connect`. For one thread.
class SessionTlsSocket final : public SessionWire {
 public:
  using Fingerprint = std::array<unsigned char, 32>;

  /// Starts to connect to `uri` (`tcp://HOST:PORT`). The broker's certificate must have this SHA-256 (64
  /// hexadecimal digits). Errors: those of SessionSocket::connect; invalid_argument; internal (OpenSSL).
  static Result<std::unique_ptr<SessionTlsSocket>> connect(const std::string& uri,
                                                           std::string_view certificate_sha256) {
    const std::optional<Fingerprint> wanted = parse(certificate_sha256);
    if (!wanted) {
      return Error{ErrorCode::invalid_argument,
                   "'" + std::string(certificate_sha256) + "' is not the SHA-256 of a certificate"};
    }
    Result<SessionSocket> socket = SessionSocket::connect(uri);
    if (!socket) return socket.error();
    std::unique_ptr<SessionTlsSocket> made(new SessionTlsSocket(uri, *wanted, std::move(*socket)));
    if (!made->set_up()) return Error{ErrorCode::internal, "cannot set up TLS: " + take_error()};
    return made;
  }
  SessionTlsSocket(const SessionTlsSocket&) = delete;
  SessionTlsSocket& operator=(const SessionTlsSocket&) = delete;
  /// Sends the TLS closing alert, if the system accepts it now.
  ~SessionTlsSocket() override {
    if (ready_ && !broken_ && waiting() == 0 && SSL_shutdown(ssl_.get()) >= 0) (void)flush();
    ERR_clear_error();
  }

  /// Additional errors: unauthorized_access (the other side has another certificate).
  Result<bool> connected() override {
    if (!reached_) {
      Result<bool> reached = socket_.connected();
      if (!reached || !*reached) return reached;
      reached_ = true;
    }
    if (ready_) return true;
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl_.get());
    const int why = result == 1 ? SSL_ERROR_NONE : SSL_get_error(ssl_.get(), result);
    // The handshake's error explains more than a failure to send the alert about it.
    if (why != SSL_ERROR_NONE && why != SSL_ERROR_WANT_READ) {
      const Error error = handshake_failure();
      (void)flush();
      return error;
    }
    if (Result<bool> flushed = flush(); !flushed) return flushed;
    ready_ = why == SSL_ERROR_NONE;
    return ready_;
  }

  Result<std::size_t> read(std::span<std::byte> to) override {
    if (broken_) return *broken_;
    ERR_clear_error();
    std::size_t got = 0;
    drained_ = false;
    while (got < to.size()) {
      std::size_t bytes = 0;
      const int result = SSL_read_ex(ssl_.get(), to.data() + got, to.size() - got, &bytes);
      if (result == 1) {
        got += bytes;
        continue;
      }
      const int why = SSL_get_error(ssl_.get(), result);
      drained_ = why == SSL_ERROR_WANT_READ;
      if (!drained_) broken_ = failure_of(why);
      break;
    }
    // This may be the answer to a key update. Bytes that are not sent now are sent with the next write.
    if (waiting() > 0) (void)flush();
    if (got == 0 && broken_) return *broken_;
    return got;
  }

  /// Encrypts the bytes that it accepts. If the system does not accept them now, `flush` sends them.
  Result<std::size_t> write(std::span<iovec> parts) override {
    std::size_t taken = 0;
    Result<bool> flushed = flush();
    for (const iovec& part : parts) {
      ByteView left(static_cast<const std::byte*>(part.iov_base), part.iov_len);
      while (!left.empty() && !broken_ && flushed && *flushed) {
        const std::size_t used = gather(left);
        taken += used;
        left = left.subspan(used);
        if (waiting() >= sealed_bytes_enough) flushed = flush();
      }
    }
    if (!seal(std::exchange(gathered_, 0))) return *broken_;
    if (flushed && *flushed) flushed = flush();
    if (!flushed) return flushed.error();
    return taken;
  }
  Result<bool> flush() override {
    while (waiting() > 0) {
      iovec part{sealed_.data() + sealed_begin_, waiting()};
      Result<std::size_t> sent = socket_.write(std::span(&part, 1));
      if (!sent) return sent.error();
      if (*sent == 0) return false;
      sealed_begin_ += *sent;
    }
    sealed_.clear();
    sealed_begin_ = 0;
    return true;
  }
  [[nodiscard]] std::size_t write_bytes_target() const override { return 2 * sealed_bytes_enough; }

  [[nodiscard]] int fd() const override { return socket_.fd(); }
  [[nodiscard]] bool tells_room_by_writable() const override { return true; }
  [[nodiscard]] bool connects_by_writable() const override { return !reached_ || waiting() > 0; }
  /// A receive takes more bytes than the caller of `read` asked for, so the descriptor does not show the
  /// rest.
  bool pending(short events) override {
    const bool more = !come_.empty() || SSL_has_pending(ssl_.get()) == 1;
    return (events & POLLIN) != 0 && (broken_.has_value() || (!drained_ && more));
  }

 private:
  template <auto free>
  struct Freed {
    template <typename T>
    void operator()(T* object) const {
      free(object);
    }
  };

  static constexpr std::size_t record_bytes_max = SSL3_RT_MAX_PLAIN_LENGTH;
  // The number of encrypted bytes that are collected before a system call.
  static constexpr std::size_t sealed_bytes_enough = 128 * limits::KiB;
  static constexpr std::size_t received_bytes_max = 128 * limits::KiB;
  // The fastest of the three first; all three are secure.
  static constexpr const char* cipher_suites =
      "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";

  SessionTlsSocket(std::string uri, const Fingerprint& wanted, SessionSocket socket)
      : uri_(std::move(uri)), wanted_(wanted), socket_(std::move(socket)) {}

  bool set_up() {
    ERR_clear_error();
    context_.reset(SSL_CTX_new(TLS_client_method()));
    method_.reset(BIO_meth_new(BIO_TYPE_SOURCE_SINK, "lightq socket"));
    if (context_ == nullptr || method_ == nullptr) return false;
    SSL_CTX* const context = context_.get();
    if (SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_ciphersuites(context, cipher_suites) != 1) {
      return false;
    }
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_cert_verify_callback(context, &SessionTlsSocket::verify, this);
    BIO_meth_set_read(method_.get(), &SessionTlsSocket::receive);
    BIO_meth_set_write(method_.get(), &SessionTlsSocket::put);
    BIO_meth_set_ctrl(method_.get(), &SessionTlsSocket::control);
    ssl_.reset(SSL_new(context));
    BIO* const bio = ssl_ == nullptr ? nullptr : BIO_new(method_.get());
    if (bio == nullptr) return false;
    BIO_set_data(bio, this);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_.get(), bio, bio);
    SSL_set_connect_state(ssl_.get());
    return true;
  }

  // --- Callbacks of OpenSSL.

  /// Accepts the certificate with the expected fingerprint; checks nothing else in it.
  static int verify(X509_STORE_CTX* store, void* self_pointer) {
    auto& self = *static_cast<SessionTlsSocket*>(self_pointer);
    Fingerprint& found = self.found_.emplace();
    unsigned int bytes = 0;
    const X509* const shown = X509_STORE_CTX_get0_cert(store);
    if (shown != nullptr && X509_digest(shown, EVP_sha256(), found.data(), &bytes) == 1 &&
        found == self.wanted_) {
      return 1;
    }
    X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED);
    return 0;
  }
  static int receive(BIO* bio, char* to, int bytes) {
    auto& self = *static_cast<SessionTlsSocket*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    if (self.come_.empty() && !self.receive_more()) {
      if (self.ended_) return 0;
      if (self.number_ == 0) BIO_set_retry_read(bio);
      return -1;
    }
    const std::size_t taken = std::min(self.come_.size(), static_cast<std::size_t>(bytes));
    std::memcpy(to, self.come_.data(), taken);
    self.come_ = self.come_.subspan(taken);
    return static_cast<int>(taken);
  }
  /// Receives much in one call. OpenSSL itself would read every record separately. With its read-ahead, it
  /// would move the bytes to the front of its buffer for every record.
  bool receive_more() {
    if (received_.empty()) received_.resize(received_bytes_max);
    const ssize_t got = ::recv(fd(), received_.data(), received_.size(), 0);
    if (got > 0) come_ = ByteView(received_).first(static_cast<std::size_t>(got));
    ended_ |= got == 0;
    if (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) number_ = errno;
    return got > 0;
  }
  static int put(BIO* bio, const char* from, int bytes) {
    auto& self = *static_cast<SessionTlsSocket*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    const auto* const begin = reinterpret_cast<const std::byte*>(from);
    self.sealed_.insert(self.sealed_.end(), begin, begin + bytes);
    return bytes;
  }
  static long control(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) {
    return command == BIO_CTRL_FLUSH ? 1 : 0;
  }

  /// Takes bytes off the front of `left` and returns how many. Encrypts large parts from their place, and
  /// collects small ones in a record. Returns 0 if the connection is broken.
  std::size_t gather(ByteView left) {
    if (gathered_ == 0 && left.size() >= record_bytes_max) {
      return seal_bytes(left.first(record_bytes_max)) ? record_bytes_max : 0;
    }
    if (record_.empty()) record_.resize(record_bytes_max);
    const std::size_t taken = std::min(left.size(), record_bytes_max - gathered_);
    std::memcpy(record_.data() + gathered_, left.data(), taken);
    gathered_ += taken;
    if (gathered_ == record_bytes_max) seal(std::exchange(gathered_, 0));
    return taken;
  }
  bool seal(std::size_t gathered) {
    return gathered == 0 ? !broken_ : seal_bytes(ByteView(record_).first(gathered));
  }
  bool seal_bytes(ByteView plain) {
    if (broken_) return false;
    ERR_clear_error();
    if (records_ == limits::tls_records_per_key_max) {
      SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED);
      records_ = 0;
    }
    std::size_t sealed = 0;
    const int result = SSL_write_ex(ssl_.get(), plain.data(), plain.size(), &sealed);
    if (result != 1) broken_ = failure_of(SSL_get_error(ssl_.get(), result));
    ++records_;
    return result == 1;
  }
  [[nodiscard]] std::size_t waiting() const { return sealed_.size() - sealed_begin_; }

  // --- Errors.

  static std::string take_error() {
    const unsigned long error = ERR_get_error();
    ERR_clear_error();
    const char* const reason = error == 0 ? nullptr : ERR_reason_error_string(error);
    return reason == nullptr ? "the broker closed the connection" : reason;
  }
  Error failure_of(int why) {
    const std::string text = take_error();
    if (why == SSL_ERROR_ZERO_RETURN || ended_) return {ErrorCode::closed, "the broker ended the connection"};
    if (number_ == EPIPE || number_ == ECONNRESET) return {ErrorCode::closed, "cannot receive", number_};
    if (number_ != 0) return {ErrorCode::io_error, "cannot receive", number_};
    return {ErrorCode::io_error, "TLS with " + uri_ + ": " + text};
  }
  Error handshake_failure() {
    if (found_ && *found_ != wanted_) {
      ERR_clear_error();
      return {ErrorCode::unauthorized_access, uri_ + " is not the broker: it has the certificate " +
                                                  text_of(*found_) + ", but the broker's join reply named " +
                                                  text_of(wanted_)};
    }
    return failure_of(SSL_ERROR_SSL);
  }

  static std::string text_of(const Fingerprint& bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    for (const unsigned char byte : bytes) text += {digits[byte >> 4U], digits[byte & 15U]};
    return text;
  }
  static std::optional<Fingerprint> parse(std::string_view text) {
    Fingerprint parsed{};
    if (text.size() != 2 * parsed.size()) return std::nullopt;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      const bool digit = c >= '0' && c <= '9';
      const bool lower = c >= 'a' && c <= 'f';
      const bool upper = c >= 'A' && c <= 'F';
      if (!digit && !lower && !upper) return std::nullopt;
      const int value = digit ? c - '0' : (c - (lower ? 'a' : 'A')) + 10;
      parsed[i / 2] = static_cast<unsigned char>(parsed[i / 2] * 16 + value);
    }
    return parsed;
  }

  const std::string uri_;
  const Fingerprint wanted_;
  std::optional<Fingerprint> found_;  // of the other side's certificate
  SessionSocket socket_;
  std::unique_ptr<BIO_METHOD, Freed<BIO_meth_free>> method_;
  std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>> context_;
  std::unique_ptr<SSL, Freed<SSL_free>> ssl_;  // declared after the objects that it uses, so destroyed first
  std::vector<std::byte> received_;
  ByteView come_;                  // in received_: not taken by OpenSSL yet
  std::vector<std::byte> record_;  // collects small parts
  std::size_t gathered_ = 0;
  std::vector<std::byte> sealed_;  // to be sent
  std::size_t sealed_begin_ = 0;   // index of the first byte not sent
  std::uint64_t records_ = 0;      // encrypted with the current key
  bool reached_ = false;           // TCP is connected
  bool ready_ = false;             // the TLS handshake is complete
  bool drained_ = true;            // the last read took everything received
  bool ended_ = false;             // the system reported the end of the stream
  int number_ = 0;                 // errno of the last failed receive
  std::optional<Error> broken_;
};

}  // namespace lightq::inline v1
