/// Runs OpenSSL over bytes in memory. Layer: crypto.
#include "crypto/tls_cipher.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace lightq::broker {

namespace {

constexpr std::size_t record_bytes_max = SSL3_RT_MAX_PLAIN_LENGTH;

}  // namespace

bio_method_st* TlsCipher::make_method() {
  BIO_METHOD* const made = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "lightq wire");
  if (made == nullptr) return nullptr;
  BIO_meth_set_read(made, &TlsCipher::take);
  BIO_meth_set_write(made, &TlsCipher::put);
  BIO_meth_set_ctrl(made, &TlsCipher::control);
  return made;
}

TlsCipher::TlsCipher(const TlsContext& context, std::uint64_t records_per_key_max)
    : identity_(context.identity()),
      ssl_(SSL_new(identity_->context)),
      records_per_key_max_(records_per_key_max) {
  BIO* const bio = BIO_new(identity_->method);
  if (ssl_ == nullptr || bio == nullptr) throw std::bad_alloc();
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_, bio, bio);
  SSL_set_accept_state(ssl_);
}

TlsCipher::~TlsCipher() {
  SSL_free(ssl_);
}

int TlsCipher::take(BIO* bio, char* to, int bytes) {
  auto& self = *static_cast<TlsCipher*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  if (self.in_.empty()) {
    BIO_set_retry_read(bio);
    return -1;
  }
  const std::size_t taken = std::min(self.in_.size(), static_cast<std::size_t>(bytes));
  std::memcpy(to, self.in_.data(), taken);
  self.in_ = self.in_.subspan(taken);
  return static_cast<int>(taken);
}

int TlsCipher::put(BIO* bio, const char* from, int bytes) {
  auto& self = *static_cast<TlsCipher*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const auto* const begin = reinterpret_cast<const std::byte*>(from);
  self.out_->insert(self.out_->end(), begin, begin + bytes);
  return bytes;
}

long TlsCipher::control(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

std::size_t TlsCipher::open(std::span<std::byte> wire, std::vector<std::byte>& plain,
                            std::vector<std::byte>& answer) {
  if (!failure_.empty()) return wire.size();
  ERR_clear_error();
  in_ = wire;
  out_ = &answer;
  if (!ready_) shake_hands();
  if (ready_) {
    const std::size_t said = plain.size();
    const std::size_t answered = answer.size();
    read(plain);
    said_bytes_ += plain.size() - said;
    answered_bytes_ += answer.size() - answered;
    if (failure_.empty() && answered_bytes_ > limits::tls_answer_bytes_max + said_bytes_ / limits::KiB)
      failure_ = "TLS: the peer updates its key too often";
  }
  in_ = {};
  out_ = nullptr;
  return wire.size();
}

void TlsCipher::shake_hands() {
  const int result = SSL_do_handshake(ssl_);
  if (result == 1) {
    ready_ = true;
  } else if (SSL_get_error(ssl_, result) != SSL_ERROR_WANT_READ) {
    fail("the handshake failed");
  }
}

/// Decrypts all bytes that have arrived. OpenSSL keeps an incomplete record.
void TlsCipher::read(std::vector<std::byte>& plain) {
  std::size_t end = plain.size();
  // The plain bytes are not more than that: OpenSSL keeps less than one record of earlier input.
  plain.resize(end + in_.size() + record_bytes_max);
  while (true) {
    std::size_t got = 0;
    const int result = SSL_read_ex(ssl_, plain.data() + end, plain.size() - end, &got);
    if (result == 1) {
      end += got;
      continue;
    }
    const int why = SSL_get_error(ssl_, result);
    if (why == SSL_ERROR_ZERO_RETURN) {
      failure_ = "closed by the peer";
      SSL_shutdown(ssl_);
    } else if (why != SSL_ERROR_WANT_READ) {
      fail("the connection failed");
    }
    break;
  }
  plain.resize(end);
}

std::size_t TlsCipher::seal(ByteView plain, std::vector<std::byte>& wire) {
  if (!ready_ || !failure_.empty() || plain.empty()) return 0;
  ERR_clear_error();
  if (records_ == records_per_key_max_) {
    SSL_key_update(ssl_, SSL_KEY_UPDATE_NOT_REQUESTED);
    records_ = 0;
  }
  out_ = &wire;
  std::size_t sealed = 0;
  const int result = SSL_write_ex(ssl_, plain.data(), std::min(plain.size(), record_bytes_max), &sealed);
  out_ = nullptr;
  if (result != 1) fail("cannot encrypt the data to send");
  ++records_;
  return result == 1 ? sealed : 0;
}

void TlsCipher::fail(const char* doing) {
  failure_ = std::string("TLS: ") + doing + ": " + take_tls_error("the peer closed the connection");
}

}  // namespace lightq::broker
