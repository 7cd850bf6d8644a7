/// Fuzz target: any bytes in any pieces are sent to the TLS cipher. The result is an answer, plain bytes that
/// the peer really sent, or a failure. The input's first byte chooses the meaning of the rest. It is the
/// peer's bytes from the beginning, or its bytes after a correct handshake. Or it is changes of a correct
/// handshake, or the actions of a correct peer. The second byte is one less than the length of a piece; 255
/// sends everything in one piece.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "crypto/tls_cipher.hpp"
#include "endpoint/tls_peer.hpp"

namespace lightq::broker {
namespace {

using test::TlsPeer;
using Bytes = std::vector<std::byte>;

enum class Input : unsigned { from_the_beginning, behind_the_handshake, changes, sound };
constexpr unsigned inputs = 4;

const TlsContext& context() {
  static const auto made = [] {
    const std::string key = make_tls_key().value_or_throw().expose();
    const std::string certificate = make_tls_certificate(key).value_or_throw();
    return TlsContext::make({certificate, key}, Timestamp{1'800'000'000'000'000}).value_or_throw();
  }();
  return *made;
}

/// The cipher, with the checks that its connection relies on.
class Broker {
 public:
  Broker(std::size_t step, std::uint64_t records_per_key_max)
      : cipher_(context(), records_per_key_max), step_(step) {}

  Bytes hear(Bytes wire) {
    Bytes answer;
    for (std::size_t at = 0; at < wire.size(); at += step_) {
      const std::size_t piece = std::min(step_, wire.size() - at);
      const bool had_failed = failed();
      const std::size_t said = plain.size() + answer.size();
      if (cipher_.open(std::span(wire).subspan(at, piece), plain, answer) != piece) std::abort();
      if (had_failed && plain.size() + answer.size() != said) std::abort();
      if (!cipher_.ready() && !plain.empty()) std::abort();
    }
    return answer;
  }
  Bytes say(ByteView text) {
    Bytes wire;
    const std::size_t sealed = cipher_.seal(text, wire);
    if (failed() && (sealed != 0 || !wire.empty())) std::abort();
    if (sealed > text.size()) std::abort();
    return wire;
  }
  [[nodiscard]] bool failed() const { return !cipher_.failure().empty(); }
  [[nodiscard]] bool ready() const { return cipher_.ready(); }

  Bytes plain;

 private:
  TlsCipher cipher_;
  const std::size_t step_;
};

void talk(TlsPeer& peer, Broker& broker) {
  peer.hear({});
  for (Bytes said = peer.says(); !said.empty(); said = peer.says()) peer.hear(broker.hear(said));
}

/// Runs a handshake with changed bytes of the peer. Each change is a u16 that chooses a byte, and a byte of
/// flipped bits.
void talk_with(ByteView changes, TlsPeer& peer, Broker& broker) {
  peer.hear({});
  for (Bytes said = peer.says(); !said.empty(); said = peer.says()) {
    constexpr std::size_t change_bytes = 3;
    for (ByteView left = changes; left.size() >= change_bytes; left = left.subspan(change_bytes)) {
      const std::size_t at =
          std::to_integer<std::size_t>(left[0]) + 256 * std::to_integer<std::size_t>(left[1]);
      if (at < said.size()) said[at] ^= left[2];
    }
    peer.hear(broker.hear(said));
  }
}

/// Lets a correct peer act. Each byte of `doings` is the length of a text, or stands for one of a few other
/// actions. Everything sent must arrive. The total is limited, because it may be sent in single bytes.
void converse(ByteView doings, TlsPeer& peer, Broker& broker) {
  constexpr std::size_t said_bytes_max = 100'000;
  std::string said;
  for (const std::byte doing : doings) {
    if (said.size() >= said_bytes_max) break;
    if (broker.failed()) return;  // the cipher refuses too many changes of the key
    const auto what = std::to_integer<unsigned>(doing);
    constexpr unsigned other_things = 240;
    if (what == 255) {
      SSL_key_update(peer.ssl(), SSL_KEY_UPDATE_REQUESTED);
    } else if (what == 254) {
      SSL_key_update(peer.ssl(), SSL_KEY_UPDATE_NOT_REQUESTED);
    } else {
      const std::string text((what < other_things ? 1 : 300) * (what + 1),
                             static_cast<char>('a' + what % 26));
      peer.send(text);
      said += text;
    }
    peer.hear(broker.hear(peer.says()));
    if (!broker.failed()) peer.hear(broker.say(as_byte_view(said)));
  }
  const bool whole = as_text(broker.plain) == said;
  if (!broker.failed() && (!whole || !peer.error.empty())) std::abort();
}

}  // namespace
}  // namespace lightq::broker

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lightq::broker;
  if (size < 2) return 0;
  const auto input = static_cast<Input>(data[0] % inputs);
  const lightq::ByteView rest(reinterpret_cast<const std::byte*>(data) + 2, size - 2);
  const std::size_t step = data[1] == 255 ? 100'000 : data[1] + std::size_t{1};
  Broker broker(step, data[0] / inputs % 2 == 0 ? 1'000'000 : 2);
  if (input == Input::from_the_beginning) {
    broker.hear(Bytes(rest.begin(), rest.end()));
    if (broker.ready() || !broker.plain.empty()) std::abort();
    return 0;
  }
  TlsPeer peer;
  if (input == Input::changes) {
    talk_with(rest, peer, broker);
  } else {
    talk(peer, broker);
    if (!broker.ready() || broker.failed()) std::abort();
    if (input == Input::sound) {
      converse(rest, peer, broker);
    } else {
      peer.hear(broker.hear(Bytes(rest.begin(), rest.end())));
      if (!broker.plain.empty()) std::abort();
    }
  }
  return 0;
}
