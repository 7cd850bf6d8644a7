/// The boxes of CurveZMQ, by libsodium. Layer: crypto.
#include "crypto/curve_box.hpp"

#include <sodium.h>

#include <algorithm>
#include <cstdlib>

namespace lightq::broker {

namespace {

static_assert(crypto_box_PUBLICKEYBYTES == curve_key_bytes && crypto_box_SECRETKEYBYTES == curve_key_bytes);
static_assert(crypto_box_BEFORENMBYTES == curve_key_bytes);
static_assert(crypto_box_NONCEBYTES == curve_nonce_bytes && crypto_box_MACBYTES == curve_tag_bytes);

unsigned char* bytes_of(std::byte* bytes) {
  return reinterpret_cast<unsigned char*>(bytes);
}
const unsigned char* bytes_of(const std::byte* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}

/// Initialises libsodium, which chooses the fastest code for this processor. The first keys are made before
/// there are other threads.
void initialise() {
  static const int state = sodium_init();
  if (state < 0) std::abort();  // no source of randomness, so no key can be made
}

}  // namespace

void fill_random(std::span<std::byte> to) {
  initialise();
  randombytes_buf(to.data(), to.size());
}

bool equal_secrets(ByteView left, ByteView right) {
  return left.size() == right.size() && sodium_memcmp(left.data(), right.data(), left.size()) == 0;
}

CurveKeyPair::CurveKeyPair() {
  initialise();
  crypto_box_keypair(bytes_of(public_.data()), bytes_of(secret_.data()));
}

CurveKeyPair::CurveKeyPair(std::span<const std::byte, curve_key_bytes> secret) {
  initialise();
  std::copy(secret.begin(), secret.end(), secret_.begin());
  crypto_scalarmult_base(bytes_of(public_.data()), bytes_of(secret_.data()));
}

std::optional<CurveBox> CurveBox::between(const CurveKeyPair& ours, const CurvePublicKey& theirs) {
  CurveBox box;
  if (crypto_box_beforenm(bytes_of(box.shared_.data()), bytes_of(theirs.data()),
                          bytes_of(ours.secret().data())) != 0)
    return std::nullopt;
  return box;
}

void CurveBox::seal(const CurveNonce& nonce, ByteView plain, std::byte* to) const {
  crypto_box_easy_afternm(bytes_of(to), bytes_of(plain.data()), plain.size(), bytes_of(nonce.data()),
                          bytes_of(shared_.data()));
}

bool CurveBox::open(const CurveNonce& nonce, ByteView box, std::byte* to) const {
  return crypto_box_open_easy_afternm(bytes_of(to), bytes_of(box.data()), box.size(), bytes_of(nonce.data()),
                                      bytes_of(shared_.data())) == 0;
}

}  // namespace lightq::broker
