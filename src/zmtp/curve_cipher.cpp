/// Encrypts and decrypts ZMTP frames as CURVE's MESSAGE commands. Layer: zmtp.
#include "zmtp/curve_cipher.hpp"

#include <algorithm>
#include <cstring>

#include <lightq/base/limits.hpp>

#include "zmtp/zmtp.hpp"

namespace lightq::broker {

namespace {

constexpr std::string_view command = "\7MESSAGE";
constexpr std::string_view nonce_of_server = "CurveZMQMESSAGES";
constexpr std::string_view nonce_of_client = "CurveZMQMESSAGEC";
constexpr std::size_t number_bytes = 8;
constexpr std::size_t box_at = command.size() + number_bytes;
constexpr std::size_t flags_bytes = 1;
constexpr std::size_t overhead_bytes = box_at + curve_tag_bytes + flags_bytes;
constexpr std::byte flag_more{0x01};
constexpr std::byte flag_command{0x02};
// A longer body is gathered here as it arrives. The bytes of a shorter incomplete body are left to the
// caller, which passes them again.
constexpr std::size_t gather_from = 16 * limits::KiB;
constexpr std::size_t gathered_bytes_kept_max = 1 * limits::MiB;

std::uint64_t number_of(const std::byte* from) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < number_bytes; ++i)
    number = number << 8U | std::to_integer<std::uint64_t>(from[i]);
  return number;
}

CurveNonce nonce_of(bool by_server, std::uint64_t number) {
  const std::string_view prefix = by_server ? nonce_of_server : nonce_of_client;
  CurveNonce nonce{};
  std::memcpy(nonce.data(), prefix.data(), prefix.size());
  for (std::size_t i = nonce.size(); i-- > prefix.size(); number >>= 8U)
    nonce.at(i) = static_cast<std::byte>(number & 0xFFU);
  return nonce;
}

}  // namespace

std::size_t CurveCipher::fail(std::string_view why) {
  failure_ = why;
  return 0;
}

std::size_t CurveCipher::open(std::span<std::byte> wire, std::vector<std::byte>& plain,
                              std::vector<std::byte>& /*answer*/) {
  std::size_t at = 0;
  while (failure_.empty()) {
    if (gathering_ > 0) {
      at += gather(wire.subspan(at), plain);
      if (gathering_ > 0) break;
      continue;
    }
    zmtp::FrameHeader header;
    const auto left = wire.subspan(at);
    const auto outcome = zmtp::parse_frame_header(left, header);
    if (outcome == zmtp::FrameOutcome::incomplete) break;
    // libzmq sends MESSAGE as if it were a message. Other peers send it as a command, as the RFC specifies.
    if (outcome == zmtp::FrameOutcome::invalid || header.more || header.body_bytes < overhead_bytes) {
      fail("a frame that is not encrypted");
      break;
    }
    if (header.body_bytes - overhead_bytes > body_bytes_max_) {
      fail("a frame of " + std::to_string(header.body_bytes - overhead_bytes) +
           " bytes, above the maximum of " + std::to_string(body_bytes_max_));
      break;
    }
    const auto body_bytes = static_cast<std::size_t>(header.body_bytes);
    const auto come = left.subspan(header.header_bytes);
    if (come.size() >= body_bytes) {
      open_message(come.first(body_bytes), plain);
      at += header.header_bytes + body_bytes;
    } else if (body_bytes > gather_from) {
      gathering_ = body_bytes;
      at += header.header_bytes;
    } else {
      break;
    }
  }
  return at;
}

/// Collects a body's bytes. The memory grows with the bytes that have arrived, not with the length that was
/// announced.
std::size_t CurveCipher::gather(std::span<std::byte> wire, std::vector<std::byte>& plain) {
  const std::size_t step = std::min(wire.size(), gathering_ - gathered_.size());
  gathered_.insert(gathered_.end(), wire.begin(), wire.begin() + static_cast<std::ptrdiff_t>(step));
  if (gathered_.size() < gathering_) return step;
  gathering_ = 0;
  open_message(gathered_, plain);
  gathered_.clear();
  if (gathered_.capacity() > gathered_bytes_kept_max) gathered_ = std::vector<std::byte>();
  return step;
}

void CurveCipher::open_message(std::span<std::byte> body, std::vector<std::byte>& plain) {
  if (as_text(body.first(command.size())) != command) {
    fail("a frame that is not encrypted");
    return;
  }
  const std::uint64_t number = number_of(body.data() + command.size());
  if (number <= received_) {
    fail("an encrypted frame with a number that was used before");
    return;
  }
  received_ = number;
  const ByteView box = ByteView(body).subspan(box_at);
  const std::size_t payload_bytes = box.size() - curve_tag_bytes - flags_bytes;
  // The flags are decrypted to the byte that becomes the last one of the frame's header.
  const std::size_t header_bytes = zmtp::frame_header_bytes(payload_bytes);
  const std::size_t before = plain.size();
  plain.resize(before + header_bytes + payload_bytes);
  std::byte* const flags_at = plain.data() + before + header_bytes - flags_bytes;
  if (!box_.open(nonce_of(side_ == Side::client, number), box, flags_at)) {
    plain.resize(before);
    fail("an encrypted frame that this connection's key does not decrypt");
    return;
  }
  const std::byte flags = *flags_at;
  if ((flags & ~(flag_more | flag_command)) != std::byte{0} || flags == (flag_more | flag_command)) {
    plain.resize(before);
    fail("an encrypted frame with unknown flags");
    return;
  }
  zmtp::encode_frame_header(plain.data() + before, payload_bytes, flags == flag_more, flags == flag_command);
}

std::size_t CurveCipher::seal(ByteView plain, std::vector<std::byte>& wire) {
  zmtp::FrameHeader header;
  if (zmtp::parse_frame_header(plain, header) != zmtp::FrameOutcome::complete) return 0;
  if (header.body_bytes > plain.size() - header.header_bytes) return 0;
  const auto body = plain.subspan(header.header_bytes, static_cast<std::size_t>(header.body_bytes));
  const std::size_t whole = overhead_bytes + body.size();
  const std::size_t before = wire.size();
  wire.resize(before + zmtp::frame_header_bytes_max + whole);
  std::byte* at = wire.data() + before;
  at += zmtp::encode_frame_header(at, whole, false);
  std::memcpy(at, command.data(), command.size());
  const CurveNonce nonce = nonce_of(side_ == Side::server, ++sent_);
  std::memcpy(at + command.size(), nonce.data() + nonce.size() - number_bytes, number_bytes);
  // Sealed in place: the tag is written in front of it.
  std::byte* const plain_at = at + box_at + curve_tag_bytes;
  *plain_at = (header.more ? flag_more : std::byte{0}) | (header.command ? flag_command : std::byte{0});
  if (!body.empty()) std::memcpy(plain_at + flags_bytes, body.data(), body.size());
  box_.seal(nonce, {plain_at, flags_bytes + body.size()}, at + box_at);
  wire.resize(static_cast<std::size_t>(at - wire.data()) + whole);
  return header.header_bytes + body.size();
}

}  // namespace lightq::broker
