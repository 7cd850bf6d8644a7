/// Fuzz target: a ZeroMQ peer sends any bytes in any pieces to the client's end of a session. The client
/// accepts them or ends the session, and the pieces make no difference. The input's first byte is one less
/// than the length of a piece. If the second is odd, a correct handshake comes before the rest.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <lightq/detail/zmtp_dealer.hpp>

namespace lightq {
namespace {

constexpr std::uint64_t message_bytes_max = 3000;

struct Heard {
  std::string text;
  std::vector<std::byte> said;
  bool complete = false;
  bool ended = false;
};

Heard hear(ByteView bytes, std::size_t step) {
  ZmtpDealer dealer(message_bytes_max);
  Heard heard;
  std::vector<std::byte> come;
  std::vector<std::byte> to(step);
  for (std::size_t at = 0; at < bytes.size() && !heard.ended; at += step) {
    const ByteView piece = bytes.subspan(at, std::min(step, bytes.size() - at));
    come.insert(come.end(), piece.begin(), piece.end());
    if (!dealer.complete()) {
      std::vector<std::byte> said;
      const Result<std::size_t> used = dealer.introduce(come, said);
      heard.ended = !used;
      if (!used) break;
      if (*used > come.size()) std::abort();
      come.erase(come.begin(), come.begin() + static_cast<std::ptrdiff_t>(*used));
    }
    for (bool full = dealer.complete(); full;) {
      const auto [used, got] = dealer.take(come, to);
      if (used > come.size() || got > to.size() || dealer.left() > message_bytes_max) std::abort();
      heard.text += as_text(ByteView(to).first(got));
      come.erase(come.begin(), come.begin() + static_cast<std::ptrdiff_t>(used));
      full = got == to.size();
    }
    heard.ended |= dealer.broken().has_value();
    // Only the beginning of a header or of a command is kept for later.
    if (come.size() > zmtp::frame_header_bytes_max + zmtp::command_bytes_max && !heard.ended) std::abort();
  }
  heard.complete = dealer.complete();
  if (dealer.owes_pong()) dealer.append_pong(heard.said);
  if (heard.said.size() > 64) std::abort();
  return heard;
}

}  // namespace
}  // namespace lightq

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lightq;
  constexpr std::size_t choices = 2;
  if (size < choices) return 0;
  std::vector<std::byte> bytes;
  if ((data[1] & 1) != 0) {
    ZmtpDealer::begin(bytes);
    zmtp::append_ready(bytes, "ROUTER");
  }
  const auto* const rest = reinterpret_cast<const std::byte*>(data);
  bytes.insert(bytes.end(), rest + choices, rest + size);
  const Heard in_pieces = hear(bytes, std::size_t{data[0]} + 1);
  const Heard at_once = hear(bytes, std::max<std::size_t>(bytes.size(), 1));
  if (in_pieces.text != at_once.text || in_pieces.ended != at_once.ended ||
      in_pieces.complete != at_once.complete || in_pieces.said != at_once.said) {
    std::abort();
  }
  return 0;
}
