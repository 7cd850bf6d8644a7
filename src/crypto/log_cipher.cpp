/// Encrypts and decrypts batches, and derives the keys for it. Layer: crypto.
#include "crypto/log_cipher.hpp"

#include <sodium.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string_view>

#include <lightq/base/wipe.hpp>

namespace lightq::rest {

namespace {

namespace layout = encrypted_layout;

static_assert(crypto_aead_xchacha20poly1305_ietf_NPUBBYTES == layout::nonce_bytes);
static_assert(crypto_aead_xchacha20poly1305_ietf_ABYTES == layout::tag_bytes);
static_assert(crypto_aead_xchacha20poly1305_ietf_KEYBYTES == key_bytes);

constexpr std::string_view log_key_context = "lightq log key 1";
constexpr std::string_view key_id_context = "lightq key id 1 ";

// Fields of the encrypted prefix, in bytes from its start.
constexpr std::size_t prefix_body_crc = 0;  // u32
constexpr std::size_t prefix_codec = 4;     // u8; three zero bytes follow

// The range of the stamped header that the tag also authenticates. It includes neither the segment's epoch
// nor the checksums.
constexpr std::size_t bound_begin = batch_layout::version;
constexpr std::size_t bound_end = batch_layout::segment_epoch;

unsigned char* raw(std::byte* bytes) {
  return reinterpret_cast<unsigned char*>(bytes);
}
const unsigned char* raw(const std::byte* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}

/// Writes the BLAKE2b, keyed with `key`, of a context of 16 bytes and a number.
void derive(std::span<std::byte> to, const Key& key, std::string_view context, std::uint64_t number) {
  std::array<std::byte, 24> input{};
  assert(context.size() + sizeof number == input.size());
  std::memcpy(input.data(), context.data(), context.size());
  store_little_endian(input.data() + context.size(), number);
  crypto_generichash(raw(to.data()), to.size(), raw(input.data()), input.size(), raw(key.data()), key_bytes);
}

// Returns the key's id, which is never 0 ("not encrypted") or key_id_unknown.
std::uint64_t id_of(const Key& key) {
  std::array<std::byte, crypto_generichash_BYTES> digest{};
  derive(digest, key, key_id_context, 0);
  const auto id = load_little_endian<std::uint64_t>(digest.data());
  return id == 0 || id == log::key_id_unknown ? 1 : id;
}

void put_checksums(std::byte* batch) {
  const ByteView whole = BatchView::trusted(batch).bytes();
  store_little_endian(batch + batch_layout::body_crc, batch_body_crc(whole));
  store_little_endian(batch + batch_layout::header_crc, batch_header_crc(batch));
}

}  // namespace

Key::~Key() {
  wipe_bytes(bytes_);
}

LogCipher::LogCipher(std::span<const Key> masters, std::uint64_t incarnation) : keys_(masters.size()) {
  assert(!masters.empty());
  for (std::size_t i = 0; i < masters.size(); ++i) {
    derive({keys_[i].key.data(), key_bytes}, masters[i], log_key_context, incarnation);
    keys_[i].id = id_of(keys_[i].key);
  }
}

bool LogCipher::knows(std::uint64_t key_id) const {
  return key_id == log::key_id_unknown ||
         std::any_of(keys_.begin(), keys_.end(), [&](const LogKey& key) { return key.id == key_id; });
}

void LogCipher::encrypt(const BatchView& batch, std::span<std::byte> to) {
  const ByteView plain = batch.bytes();
  const std::size_t records_bytes = plain.size() - batch_layout::header_bytes;
  assert(to.size() == plain.size() + layout::more_bytes);
  std::byte* const at = to.data();
  std::memcpy(at, plain.data(), batch_layout::header_bytes);
  store_little_endian(at + batch_layout::codec, static_cast<std::uint8_t>(Codec::encrypted));
  store_little_endian(at + batch_layout::total_bytes, static_cast<std::uint32_t>(to.size()));
  randombytes_buf(at + layout::nonce, layout::nonce_bytes);
  std::byte* const inner = at + layout::sealed;
  std::memset(inner, 0, layout::prefix_bytes);
  std::memcpy(inner + prefix_body_crc, plain.data() + batch_layout::body_crc, sizeof(std::uint32_t));
  inner[prefix_codec] = plain[batch_layout::codec];
  std::memcpy(inner + layout::prefix_bytes, plain.data() + batch_layout::header_bytes, records_bytes);
  unsigned long long tag_length = 0;
  crypto_aead_xchacha20poly1305_ietf_encrypt_detached(
      raw(inner), raw(inner + layout::prefix_bytes + records_bytes), &tag_length, raw(inner),
      layout::prefix_bytes + records_bytes, raw(at + bound_begin), bound_end - bound_begin, nullptr,
      raw(at + layout::nonce), raw(keys_.front().key.data()));
  put_checksums(at);
}

bool LogCipher::decrypt(const BatchView& batch, std::uint64_t key_id, std::span<std::byte> to) {
  assert(batch.is_encrypted() && to.size() + layout::more_bytes == batch.total_bytes());
  for (const LogKey& key : keys_) {
    if (key_id != log::key_id_unknown && key_id != key.id) continue;
    if (decrypt_with(key.key, batch, to)) return true;
  }
  return false;
}

// Decrypts the prefix into the last bytes of the header's space, and then writes the header over it.
bool LogCipher::decrypt_with(const Key& key, const BatchView& batch, std::span<std::byte> to) {
  const ByteView stored = batch.bytes();
  std::byte* const inner = to.data() + batch_layout::header_bytes - layout::prefix_bytes;
  const std::size_t inner_bytes = stored.size() - layout::sealed - layout::tag_bytes;
  const bool right = crypto_aead_xchacha20poly1305_ietf_decrypt_detached(
                         raw(inner), nullptr, raw(stored.data() + layout::sealed), inner_bytes,
                         raw(stored.data() + layout::sealed + inner_bytes), raw(stored.data() + bound_begin),
                         bound_end - bound_begin, raw(stored.data() + layout::nonce), raw(key.data())) == 0;
  if (!right) return false;
  std::array<std::byte, layout::prefix_bytes> prefix{};
  std::memcpy(prefix.data(), inner, layout::prefix_bytes);
  const bool zeros = std::all_of(prefix.begin() + prefix_codec + 1, prefix.end(),
                                 [](std::byte byte) { return byte == std::byte{0}; });
  if (!zeros) return false;
  std::memcpy(to.data(), stored.data(), batch_layout::header_bytes);
  to[batch_layout::codec] = prefix[prefix_codec];
  store_little_endian(to.data() + batch_layout::total_bytes, static_cast<std::uint32_t>(to.size()));
  std::memcpy(to.data() + batch_layout::body_crc, prefix.data() + prefix_body_crc, sizeof(std::uint32_t));
  store_little_endian(to.data() + batch_layout::header_crc, batch_header_crc(to.data()));
  return true;
}

}  // namespace lightq::rest
