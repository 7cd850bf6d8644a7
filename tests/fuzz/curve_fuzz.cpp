/// Fuzz target: a peer of an endpoint with CURVE encryption that sends any bytes in any pieces. The peer is
/// admitted with its own key or not at all, and decrypted bytes are a prefix of the encrypted ones. The
/// input's first byte chooses the test. 0 sends the input as it is. 1 sends the HELLO and INITIATE of a valid
/// client, changed by the input. 2 sends frames of a valid client, changed by the input. The second byte is
/// one less than the length of a piece.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "access/connection_authorizer.hpp"
#include "support/curve_client.hpp"
#include "zmtp/zmtp_handshake.hpp"

namespace lightq::broker {
namespace {

using Bytes = std::vector<std::byte>;

constexpr Grant grant{TopicId{1}, EndpointRole::produce};
constexpr std::uint64_t body_bytes_max = 50'000;

const WallClock& now() {
  static const WallClock clock = [] { return Timestamp{1'800'000'000'000'000}; };
  return clock;
}

/// The keys of a broker, and those of a registered client.
struct World {
  World() {
    keys.put({client.public_key(), grant, 1'800'000'060'000, {}});
    authorizer.encrypt(server, &keys);
  }
  const TicketKey tickets{TicketKey::random_bytes()};
  const CurveKeys server;
  const CurveKeyPair client;
  ClientKeys keys;
  ConnectionAuthorizer authorizer{tickets, now(), grant};
};

const World& world() {
  static const World made;
  return made;
}

/// The authorizer's side of a handshake.
struct Door {
  Door() {
    handshake.guard(&world().authorizer);
    handshake.take_bodies_up_to(body_bytes_max);
    handshake.begin(said);
  }
  Bytes hear(const Bytes& says, std::size_t piece) {
    for (std::size_t at = 0; at < says.size() && handshake.failure().empty() && !handshake.complete();) {
      const std::size_t step = std::min(piece, says.size() - at);
      come.insert(come.end(), says.begin() + static_cast<std::ptrdiff_t>(at),
                  says.begin() + static_cast<std::ptrdiff_t>(at + step));
      at += step;
      const std::size_t used = handshake.take(come, said);
      if (used > come.size()) std::abort();
      come.erase(come.begin(), come.begin() + static_cast<std::ptrdiff_t>(used));
    }
    return std::exchange(said, {});
  }
  ZmtpHandshake handshake{"PULL", {"PUSH"}};
  Bytes said;
  Bytes come;
};

/// Returns the data behind the name of a command frame.
Bytes data_of(const Bytes& said, std::string_view name) {
  zmtp::FrameHeader header;
  if (zmtp::parse_frame_header(said, header) != zmtp::FrameOutcome::complete) return {};
  const auto command = zmtp::parse_command(ByteView(said).subspan(header.header_bytes));
  if (!command || command->name != name) return {};
  return {command->data.begin(), command->data.end()};
}

/// Changes bytes. Each edit is three bytes: two of position and one of flipped bits. Returns false if the
/// result is the same as before.
bool change(Bytes& bytes, ByteView edits) {
  const Bytes before = bytes;
  for (; edits.size() >= 3 && !bytes.empty(); edits = edits.subspan(3)) {
    const std::size_t at =
        std::to_integer<std::size_t>(edits[0]) << 8U | std::to_integer<std::size_t>(edits[1]);
    bytes[at % bytes.size()] ^= edits[2];
  }
  return bytes != before;
}

void send_as_it_is(ByteView input, std::size_t piece) {
  Door door;
  door.hear({input.begin(), input.end()}, piece);
  if (door.handshake.complete()) std::abort();  // the input cannot contain a valid key
}

void change_handshake(ByteView input, std::size_t piece) {
  Door door;
  test::CurveClient client(world().client, world().server.public_key());
  const auto greeting = zmtp::greeting(zmtp::Mechanism::curve);
  door.hear({greeting.begin(), greeting.end()}, piece);
  const auto half = input.size() / 2;
  Bytes says;
  client.append_hello(says);
  const bool hello_changed = change(says, input.first(half));
  if (!client.take_welcome(data_of(door.hear(says, piece), "WELCOME"))) {
    if (door.handshake.complete()) std::abort();
    return;
  }
  says.clear();
  client.append_initiate(says, zmtp::metadata_of("PUSH"));
  const bool changed = change(says, input.subspan(half));
  door.hear(says, piece);
  if (changed && door.handshake.complete()) std::abort();
  if (!changed && !hello_changed && !door.handshake.complete()) std::abort();
}

/// Makes frames. The input has two bytes of length and one of flags for each.
Bytes frames_of(ByteView input) {
  Bytes plain;
  for (int i = 0; i < 8 && input.size() >= 3; ++i, input = input.subspan(3)) {
    const std::size_t bytes =
        std::to_integer<std::size_t>(input[0]) << 8U | std::to_integer<std::size_t>(input[1]);
    const int flags = std::to_integer<int>(input[2]) % 3;
    std::byte header[zmtp::frame_header_bytes_max];
    const std::size_t header_bytes = zmtp::encode_frame_header(header, bytes, flags == 1, flags == 2);
    plain.insert(plain.end(), header, header + header_bytes);
    plain.insert(plain.end(), bytes, std::byte{0x61});
  }
  return plain;
}

void change_frames(ByteView input, std::size_t piece) {
  CurveServer server(world().server);
  test::CurveClient client(world().client, world().server.public_key());
  Bytes out;
  client.append_hello(out);
  Bytes welcome;
  if (server.take_hello(data_of(out, "HELLO"), welcome) != CurveOutcome::good) std::abort();
  if (!client.take_welcome(data_of(welcome, "WELCOME"))) std::abort();
  out.clear();
  client.append_initiate(out, {});
  if (server.take_initiate(data_of(out, "INITIATE")) != CurveOutcome::good) std::abort();
  const auto opens = server.make_cipher(body_bytes_max);
  const auto seals = client.make_cipher(body_bytes_max);
  const auto half = input.size() / 2;
  const Bytes plain = frames_of(input.first(half));
  Bytes wire;
  for (std::size_t at = 0; at < plain.size();) {
    const std::size_t step = seals->seal(ByteView(plain).subspan(at), wire);
    if (step == 0) std::abort();
    at += step;
  }
  change(wire, input.subspan(half));
  Bytes come, got, answer;
  for (std::size_t at = 0; at < wire.size() && opens->failure().empty();) {
    const std::size_t step = std::min(piece * 64, wire.size() - at);
    come.insert(come.end(), wire.begin() + static_cast<std::ptrdiff_t>(at),
                wire.begin() + static_cast<std::ptrdiff_t>(at + step));
    at += step;
    const std::size_t used = opens->open(come, got, answer);
    if (used > come.size()) std::abort();
    come.erase(come.begin(), come.begin() + static_cast<std::ptrdiff_t>(used));
    if (come.size() > 2 * 16 * 1024 && opens->failure().empty()) std::abort();
  }
  if (got.size() > plain.size() || !std::equal(got.begin(), got.end(), plain.begin())) std::abort();
}

}  // namespace
}  // namespace lightq::broker

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lightq::broker;
  if (size < 2) return 0;
  const auto input = std::as_bytes(std::span(data, size)).subspan(2);
  const std::size_t piece = data[1] + std::size_t{1};
  switch (data[0] % 3) {
    case 0: send_as_it_is(input, piece); break;
    case 1: change_handshake(input, piece); break;
    default: change_frames(input, piece); break;
  }
  return 0;
}
