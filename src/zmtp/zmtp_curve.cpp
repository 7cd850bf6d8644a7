/// Builds, encrypts, decrypts and checks the commands of the CURVE handshake. Layer: zmtp.
#include "zmtp/zmtp_curve.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "zmtp/zmtp.hpp"

namespace lightq::broker {

namespace {

constexpr std::size_t number_bytes = 8;
constexpr std::size_t long_nonce_bytes = 16;  // the random part of a nonce, which the command carries
constexpr std::string_view hello_nonce = "CurveZMQHELLO---";
constexpr std::string_view welcome_nonce = "WELCOME-";
constexpr std::string_view initiate_nonce = "CurveZMQINITIATE";
constexpr std::string_view vouch_nonce = "VOUCH---";
constexpr std::string_view ready_nonce = "CurveZMQREADY---";

// The layout of HELLO's data.
constexpr std::size_t version_bytes = 2;
constexpr std::byte version_major{1};
constexpr std::size_t padding_bytes = 72;
constexpr std::size_t hello_key_at = version_bytes + padding_bytes;
constexpr std::size_t hello_number_at = hello_key_at + curve_key_bytes;
constexpr std::size_t hello_box_at = hello_number_at + number_bytes;
constexpr std::size_t hello_zeros_bytes = 64;
constexpr std::size_t hello_bytes = hello_box_at + curve_tag_bytes + hello_zeros_bytes;
// The layout of INITIATE's data.
constexpr std::size_t initiate_number_at = curve_cookie_bytes;
constexpr std::size_t initiate_box_at = initiate_number_at + number_bytes;
constexpr std::size_t vouch_plain_bytes = 2 * curve_key_bytes;
constexpr std::size_t vouch_box_bytes = curve_tag_bytes + vouch_plain_bytes;
constexpr std::size_t vouch_nonce_at = curve_key_bytes;  // this and the next positions are in the box
constexpr std::size_t vouch_box_at = vouch_nonce_at + long_nonce_bytes;
constexpr std::size_t metadata_at = vouch_box_at + vouch_box_bytes;
constexpr std::size_t initiate_bytes_min = initiate_box_at + curve_tag_bytes + metadata_at;
constexpr std::uint64_t ready_number = 1;  // READY's number; the server's MESSAGEs count on from it

/// Returns a nonce: the fixed prefix and then the part that the command carries.
CurveNonce nonce_of(std::string_view prefix, ByteView said) {
  CurveNonce nonce{};
  std::memcpy(nonce.data(), prefix.data(), prefix.size());
  std::copy_n(said.begin(), nonce.size() - prefix.size(),
              nonce.begin() + static_cast<std::ptrdiff_t>(prefix.size()));
  return nonce;
}

std::array<std::byte, number_bytes> bytes_of(std::uint64_t number) {
  std::array<std::byte, number_bytes> bytes{};
  for (std::size_t i = bytes.size(); i-- > 0; number >>= 8U)
    bytes.at(i) = static_cast<std::byte>(number & 0xFFU);
  return bytes;
}

std::uint64_t number_of(ByteView bytes) {
  std::uint64_t number = 0;
  for (const std::byte byte : bytes.first(number_bytes))
    number = number << 8U | std::to_integer<std::uint64_t>(byte);
  return number;
}

CurvePublicKey key_at(ByteView bytes, std::size_t at) {
  CurvePublicKey key{};
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), key.size(), key.begin());
  return key;
}

void append(std::vector<std::byte>& to, ByteView bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

void append_sealed(std::vector<std::byte>& to, const CurveBox& box, const CurveNonce& nonce, ByteView plain) {
  const std::size_t at = to.size();
  to.resize(at + curve_tag_bytes + plain.size());
  box.seal(nonce, plain, to.data() + at);
}

/// Returns the contents of the box, or nothing if it does not open.
std::optional<std::vector<std::byte>> opened(const CurveBox& box, const CurveNonce& nonce, ByteView sealed) {
  std::vector<std::byte> plain(sealed.size() - curve_tag_bytes);
  if (!box.open(nonce, sealed, plain.data())) return std::nullopt;
  return plain;
}

}  // namespace

CurveOutcome CurveServer::take_hello(ByteView data, std::vector<std::byte>& output) {
  if (data.size() != hello_bytes || data[0] != version_major) return CurveOutcome::malformed;
  client_transient_ = key_at(data, hello_key_at);
  box_ = CurveBox::between(transient_, client_transient_);
  if (!box_) return CurveOutcome::malformed;
  received_ = number_of(data.subspan(hello_number_at));
  const auto nonce = nonce_of(hello_nonce, data.subspan(hello_number_at, number_bytes));
  std::optional<CurveBox> with_server;
  std::optional<std::vector<std::byte>> zeros;
  for (const auto& key : {keys_.current, keys_.former}) {
    if (zeros || key == nullptr) continue;
    with_server = CurveBox::between(*key, client_transient_);
    if (!with_server) return CurveOutcome::malformed;
    zeros = opened(*with_server, nonce, data.subspan(hello_box_at));
    server_key_ = key->public_key();
  }
  if (!zeros) return CurveOutcome::other_key;
  if (!equal_secrets(*zeros, std::vector<std::byte>(hello_zeros_bytes))) return CurveOutcome::malformed;

  fill_random(cookie_);
  std::array<std::byte, long_nonce_bytes> said{};
  fill_random(said);
  std::vector<std::byte> plain;
  append(plain, transient_.public_key());
  append(plain, cookie_);
  std::vector<std::byte> welcome(said.begin(), said.end());
  append_sealed(welcome, *with_server, nonce_of(welcome_nonce, said), plain);
  zmtp::append_command(output, "WELCOME", welcome);
  return CurveOutcome::good;
}

CurveOutcome CurveServer::take_initiate(ByteView data) {
  if (data.size() < initiate_bytes_min || !equal_secrets(data.first(curve_cookie_bytes), cookie_))
    return CurveOutcome::malformed;
  const auto said = data.subspan(initiate_number_at, number_bytes);
  if (number_of(said) <= received_) return CurveOutcome::malformed;
  received_ = number_of(said);
  auto plain = opened(*box_, nonce_of(initiate_nonce, said), data.subspan(initiate_box_at));
  if (!plain) return CurveOutcome::malformed;
  const ByteView content = *plain;
  client_key_ = key_at(content, 0);
  // The vouch shows that the client owns its long-term key and uses this connection's transient key.
  const auto by_client = CurveBox::between(transient_, client_key_);
  if (!by_client) return CurveOutcome::malformed;
  const auto vouch =
      opened(*by_client, nonce_of(vouch_nonce, content.subspan(vouch_nonce_at, long_nonce_bytes)),
             content.subspan(vouch_box_at, vouch_box_bytes));
  if (!vouch || key_at(*vouch, 0) != client_transient_ || key_at(*vouch, curve_key_bytes) != server_key_)
    return CurveOutcome::malformed;
  metadata_.assign(content.begin() + static_cast<std::ptrdiff_t>(metadata_at), content.end());
  return CurveOutcome::good;
}

void CurveServer::append_ready(std::vector<std::byte>& output, ByteView metadata) const {
  const auto said = bytes_of(ready_number);
  std::vector<std::byte> ready(said.begin(), said.end());
  append_sealed(ready, *box_, nonce_of(ready_nonce, said), metadata);
  zmtp::append_command(output, "READY", ready);
}

std::unique_ptr<CurveCipher> CurveServer::make_cipher(std::uint64_t body_bytes_max) const {
  return std::make_unique<CurveCipher>(*box_, CurveCipher::Side::server, ready_number, received_,
                                       body_bytes_max);
}

}  // namespace lightq::broker
