/// A client's end of TLS in memory, against the broker's cipher or any other server. For tests.
#pragma once

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <lightq/base/types.hpp>

namespace lightq::test {

/// OpenSSL as a client, with two memory buffers in place of a connection. Thread: one.
class TlsPeer {
 public:
  explicit TlsPeer(int newest = TLS1_3_VERSION, int oldest = TLS1_2_VERSION)
      : context_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_set_min_proto_version(context_, oldest);
    SSL_CTX_set_max_proto_version(context_, newest);
    ssl_ = SSL_new(context_);
    in_ = BIO_new(BIO_s_mem());
    out_ = BIO_new(BIO_s_mem());
    if (ssl_ == nullptr || in_ == nullptr || out_ == nullptr) throw std::bad_alloc();
    SSL_set_bio(ssl_, in_, out_);
    SSL_set_connect_state(ssl_);
  }
  TlsPeer(const TlsPeer&) = delete;
  TlsPeer& operator=(const TlsPeer&) = delete;
  ~TlsPeer() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
    ERR_clear_error();
  }

  [[nodiscard]] SSL* ssl() const { return ssl_; }
  /// Takes and returns the bytes that it wants to send.
  std::vector<std::byte> says() {
    std::vector<std::byte> bytes(BIO_ctrl_pending(out_));
    if (!bytes.empty()) BIO_read(out_, bytes.data(), static_cast<int>(bytes.size()));
    return bytes;
  }
  /// Receives bytes and continues with the handshake or the data.
  void hear(ByteView bytes) {
    if (!bytes.empty()) BIO_write(in_, bytes.data(), static_cast<int>(bytes.size()));
    ERR_clear_error();
    if (SSL_is_init_finished(ssl_) == 0) {
      note(SSL_do_handshake(ssl_));
      if (SSL_is_init_finished(ssl_) == 0) return;
    }
    std::vector<char> room(20'000);
    std::size_t got = 0;
    while (true) {
      const int result = SSL_read_ex(ssl_, room.data(), room.size(), &got);
      if (result != 1) return note(result);
      heard.append(room.data(), got);
    }
  }
  void send(std::string_view text) {
    std::size_t sent = 0;
    if (SSL_write_ex(ssl_, text.data(), text.size(), &sent) != 1 || sent != text.size())
      throw std::runtime_error("nothing was written");
  }
  [[nodiscard]] bool connected() const { return SSL_is_init_finished(ssl_) == 1 && error.empty(); }

  std::string heard;   ///< the received plain text
  std::string error;   ///< the reason why it cannot continue
  bool ended = false;  ///< the other side has announced its end

 private:
  void note(int result) {
    if (result == 1) return;
    const int why = SSL_get_error(ssl_, result);
    if (why == SSL_ERROR_WANT_READ) return;
    ended |= why == SSL_ERROR_ZERO_RETURN;
    const char* const reason = ERR_reason_error_string(ERR_peek_error());
    if (why != SSL_ERROR_ZERO_RETURN) error = reason == nullptr ? "broken" : reason;
  }

  SSL_CTX* context_;
  SSL* ssl_ = nullptr;
  BIO* in_ = nullptr;
  BIO* out_ = nullptr;
};

}  // namespace lightq::test
