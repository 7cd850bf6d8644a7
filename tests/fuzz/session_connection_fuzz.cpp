/// Fuzz target: the client of a session sends any bytes in any pieces. The broker must answer or close the
/// connection. The bits of the input's first byte choose the test:
///
/// `in_messages_bit` chooses the carrier: ZeroMQ messages, or else a stream. `encrypted_bit` encrypts, with
/// CURVE in messages and with TLS in a stream. With `described_bit` the rest of the input describes frames,
/// which get their length and checksum here. Without it the rest is the bytes to send. With `shared_bit` the
/// client shares memory over a stream in clear, and the rest describes its actions in that memory. Then
/// `encrypted_bit` lets the client wake the broker over the socket, and the other bits have no effect.
///
/// The second byte is one less than the length of a piece.
#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "access/connection_authorizer.hpp"
#include "access/ticket_key.hpp"
#include "crypto/tls_context.hpp"
#include "endpoint/tls_peer.hpp"
#include "session/session_connection.hpp"
#include "support/curve_client.hpp"

namespace lightq::broker {
namespace {

using Bytes = std::vector<std::byte>;

constexpr unsigned in_messages_bit = 1;
constexpr unsigned described_bit = 2;
constexpr unsigned encrypted_bit = 4;
constexpr unsigned shared_bit = 8;  // in_messages_bit and described_bit are ignored then

/// The broker's certificate and key.
const TlsContext& tls_context() {
  static const auto made = [] {
    const std::string key = make_tls_key().value_or_throw().expose();
    const std::string certificate = make_tls_certificate(key).value_or_throw();
    return TlsContext::make({certificate, key}, Timestamp{1'800'000'000'000'000}).value_or_throw();
  }();
  return *made;
}
const CurveKeys& curve_key() {
  static const CurveKeys made;
  return made;
}

/// A key for which no client has a ticket.
const TicketKey& unknown_key() {
  static const TicketKey made{TicketKey::random_bytes()};
  return made;
}

class Host final : public SessionConnection::Host, public ZmtpConnection::Owner {
 public:
  explicit Host(bool curve) {
    if (curve) authorizer_.encrypt(curve_key(), nullptr);
  }
  std::optional<Permit> permit_of(std::string_view ticket) override {
    if (ticket.size() > session::ticket_bytes_max) std::abort();
    // No forged ticket may be valid.
    if (unknown_key().check(ticket, Timestamp{1'800'000'000'000'000}).grant) std::abort();
    if (ticket.starts_with("x")) return std::nullopt;
    return Permit{{TopicId{1}, EndpointRole::produce}, {}};
  }
  [[nodiscard]] bool is_good(const Permit&, const TopicRuntime&, const GroupScope&) const override {
    return true;
  }
  TopicRuntime* find_topic(TopicId) override { return nullptr; }
  void session_opened(SessionConnection&) override {}
  [[nodiscard]] std::uint64_t message_bytes_max() const override { return 100'000; }
  [[nodiscard]] const SessionSettings& session_settings() const override { return settings_; }
  void connection_opened(Connection&) override {}
  void connection_closed(Connection&, const std::string&) override { closed = true; }
  [[nodiscard]] const ConnectionAuthorizer* authorizer() const override {
    return authorizer_.curve() == nullptr ? nullptr : &authorizer_;
  }
  [[nodiscard]] std::chrono::milliseconds handshake_time() const override { return std::chrono::seconds(5); }

  bool closed = false;

 private:
  MemoryBudget memory_{limits::MiB, 1};
  SessionSettings settings_{.broker = 1, .heartbeat_ms = 0, .memory = &memory_};
  ConnectionAuthorizer authorizer_;
};

void turn(EventLoop& loop) {
  std::stop_source stop;
  loop.post_answer([&] { stop.request_stop(); });
  loop.run(stop.get_token());
}

/// The client's end of the connection.
class Line {
 public:
  Line(UniqueFd peer, EventLoop& loop, const Host& host, std::size_t step)
      : peer_(std::move(peer)), loop_(loop), host_(host), step_(step) {}
  /// Sends the bytes in pieces. The broker handles each piece before the next is sent.
  void send(ByteView bytes) {
    for (std::size_t at = 0; at < bytes.size() && !host_.closed; at += step_) {
      const ByteView piece = bytes.subspan(at, std::min(step_, bytes.size() - at));
      static_cast<void>(::send(peer_.get(), piece.data(), piece.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
      turn(loop_);
    }
  }
  Bytes receive() {
    static Bytes buffer(256 * limits::KiB);
    const ssize_t got = ::recv(peer_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    return {buffer.begin(), buffer.begin() + std::max<ssize_t>(got, 0)};
  }
  [[nodiscard]] std::size_t step() const { return step_; }
  [[nodiscard]] int descriptor() const { return peer_.get(); }

 private:
  const UniqueFd peer_;
  EventLoop& loop_;
  const Host& host_;
  const std::size_t step_;
};

/// Sends `said` from a correct TLS peer, one TLS record for each piece.
void say_over_tls(Line& line, const Host& host, ByteView said) {
  test::TlsPeer peer;
  peer.hear({});
  for (Bytes says = peer.says(); !says.empty(); says = peer.says()) {
    line.send(says);
    peer.hear(line.receive());
  }
  if (!peer.connected()) std::abort();
  for (std::size_t at = 0; at < said.size() && !host.closed; at += line.step()) {
    const ByteView piece = said.subspan(at, std::min(line.step(), said.size() - at));
    peer.send({reinterpret_cast<const char*>(piece.data()), piece.size()});
    line.send(peer.says());
    peer.hear(line.receive());
    if (!peer.error.empty()) std::abort();
  }
}

/// Returns the data of the command at `position`, which the broker has sent unencrypted.
ByteView command_data(ByteView bytes, std::size_t position) {
  zmtp::FrameHeader header;
  const ByteView from = bytes.subspan(std::min(position, bytes.size()));
  if (zmtp::parse_frame_header(from, header) != zmtp::FrameOutcome::complete) std::abort();
  const auto command = zmtp::parse_command(from.subspan(header.header_bytes));
  if (!command) std::abort();
  return command->data;
}

/// Sends the complete frames of `said` from a correct CURVE peer.
void say_over_curve(Line& line, ByteView said) {
  const CurveKeyPair own;
  test::CurveClient client(own, curve_key().public_key());
  const auto greeting = zmtp::greeting(zmtp::Mechanism::curve);
  Bytes says(greeting.begin(), greeting.end());
  client.append_hello(says);
  line.send(says);
  if (!client.take_welcome(command_data(line.receive(), greeting.size()))) std::abort();
  says.clear();
  client.append_initiate(says, zmtp::metadata_of("DEALER"));
  line.send(says);
  if (!client.take_ready(command_data(line.receive(), 0))) std::abort();
  const auto cipher = client.make_cipher(limits::message_bytes_max_default);
  says.clear();
  while (!said.empty()) {
    const std::size_t sealed = cipher->seal(said, says);
    if (sealed == 0) break;
    said = said.subspan(sealed);
  }
  line.send(says);
  Bytes answers = line.receive();
  Bytes plain, answer;
  cipher->open(answers, plain, answer);
  if (!cipher->failure().empty()) std::abort();
}

/// Appends what a ZeroMQ peer sends before its first message.
void introduce(Bytes& to) {
  ZmtpHandshake("DEALER", {}).begin(to);
  zmtp::append_ready(to, "DEALER");
}

/// Makes frames of the description `from`: op, flags, channel, request, a u16 with the length of the body,
/// the body.
Bytes frames_of(ByteView from, bool in_messages) {
  using namespace session::frame_layout;
  constexpr std::size_t head_bytes = 6;
  Bytes made;
  while (from.size() >= head_bytes) {
    const std::size_t body_bytes =
        std::min<std::size_t>(load_little_endian<std::uint16_t>(from.data() + 4), from.size() - head_bytes);
    Bytes frame(header_bytes + body_bytes);
    frame[op] = from[0];
    frame[flags] = from[1];
    store_little_endian(frame.data() + channel, std::to_integer<std::uint32_t>(from[2]));
    store_little_endian(frame.data() + request, std::to_integer<std::uint32_t>(from[3]));
    store_little_endian(frame.data() + session::frame_layout::body_bytes,
                        static_cast<std::uint32_t>(body_bytes));
    std::copy_n(from.begin() + head_bytes, body_bytes, frame.begin() + header_bytes);
    const std::uint32_t sum =
        crc32c(ByteView(frame).subspan(header_bytes), crc32c(ByteView(frame).first(crc)));
    store_little_endian(frame.data() + crc, sum);
    if (in_messages) {
      const std::size_t at = made.size();
      made.resize(at + zmtp::frame_header_bytes_max);
      made.resize(at + zmtp::encode_frame_header(made.data() + at, frame.size(), false));
    }
    made.insert(made.end(), frame.begin(), frame.end());
    from = from.subspan(head_bytes + body_bytes);
  }
  return made;
}

constexpr session::SharedSizes shared_sizes{4096, 4096};

/// Returns the memory that comes with the answer to `share`. Adds the descriptors that wake the two sides to
/// `wakes`, which keeps them open until the input ends.
SharedMemory take_given(int peer, std::vector<UniqueFd>& wakes) {
  std::array<std::byte, 1024> data;
  std::array<int, 3> descriptors{-1, -1, -1};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof descriptors)> control{};
  iovec part{data.data(), data.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  bool come = false;
  while (!come && ::recvmsg(peer, &message, MSG_DONTWAIT) > 0) {
    const cmsghdr* const about = CMSG_FIRSTHDR(&message);
    come = about != nullptr && about->cmsg_len <= CMSG_LEN(sizeof descriptors);
    if (come) std::memcpy(descriptors.data(), CMSG_DATA(about), about->cmsg_len - CMSG_LEN(0));
  }
  if (!come) std::abort();
  for (const int descriptor : {descriptors[1], descriptors[2]})
    if (descriptor >= 0) wakes.emplace_back(descriptor);
  return SharedMemory::adopt(descriptors[0], shared_sizes.whole()).value_or_throw();
}

/// Acts in memory that the broker shares. `does` describes the actions: one byte chooses an action, the next
/// ones are its arguments. If the broker gives descriptors for waking, first fills their counts and clears
/// their flags. Sends a byte over the socket after each action.
void do_in_memory(Line& line, const Host& host, ByteView does, bool wakes_by_socket) {
  session::Hello hello;
  hello.ticket = "a good one";
  line.send(session::encode_frame(hello, 0, 1));
  line.send(session::encode_frame(session::Share{shared_sizes, wakes_by_socket}, 0, 2));
  std::vector<UniqueFd> wakes;
  SharedMemory memory = take_given(line.descriptor(), wakes);
  if (wakes.size() != (wakes_by_socket ? 0U : 2U)) std::abort();
  constexpr std::uint64_t full = UINT64_MAX - 1;
  for (const UniqueFd& each : wakes) {
    static_cast<void>(::write(each.get(), &full, sizeof full));
    static_cast<void>(::fcntl(each.get(), F_SETFL, 0));
  }
  const std::span<std::byte> bytes = memory.bytes();
  auto* const words = reinterpret_cast<ByteRingWords*>(bytes.data());
  session::SharedRings rings(std::move(memory), shared_sizes, session::SharedSide::client);
  constexpr std::size_t head_bytes = 9;
  // Writes go to positions below this, which is nearly all of the memory.
  constexpr std::size_t reach = 12'000;
  constexpr std::size_t longest = 300;
  while (does.size() >= head_bytes && !host.closed) {
    const auto what = std::to_integer<unsigned>(does[0]);
    const auto number = load_little_endian<std::uint64_t>(does.data() + 1);
    does = does.subspan(head_bytes);
    ByteRingWords& ring = words[(what >> 2U) % 2];
    const std::size_t at = number % reach;
    const std::size_t count = std::min<std::size_t>({number % longest, does.size(), bytes.size() - at});
    switch (what % 4) {
      case 0: ring.written = (what & 8U) != 0 ? number : ring.written + number % 5000; break;
      case 1: ring.taken = (what & 8U) != 0 ? number : ring.taken + number % 5000; break;
      case 2: std::copy_n(does.begin(), count, bytes.begin() + static_cast<std::ptrdiff_t>(at)); break;
      default:
        static_cast<void>(rings.writer().write(frames_of(does.first(count), false)));
        static_cast<void>(rings.writer().publish());
        does = does.subspan(count);
    }
    for (std::size_t each = 0; each < 2; ++each) words[each].reader_waits = words[each].writer_waits = 1;
    line.send(as_byte_view("!"));  // wakes the broker; without wakes_by_socket it has no meaning
  }
}

}  // namespace
}  // namespace lightq::broker

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lightq::broker;
  if (size < 3) return 0;
  const bool in_messages = (data[0] & (shared_bit | in_messages_bit)) == in_messages_bit;
  const bool described = (data[0] & described_bit) != 0;
  const bool shared = (data[0] & shared_bit) != 0;
  const bool encrypted = !shared && (data[0] & encrypted_bit) != 0;
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) std::abort();
  Host host(in_messages && encrypted);
  EventLoop loop;
  static std::vector<std::byte> scratch(256 * lightq::limits::KiB);
  Line line(UniqueFd(pair[1]), loop, host, data[1] + std::size_t{1});
  const auto connection =
      std::make_unique<SessionConnection>(loop, UniqueFd(pair[0]), host, scratch, host, 1,
                                          in_messages ? SessionCarrier::zmtp : SessionCarrier::stream,
                                          encrypted && !in_messages ? &tls_context() : nullptr);
  const lightq::ByteView rest(reinterpret_cast<const std::byte*>(data) + 2, size - 2);
  Bytes said;
  if (in_messages && described && !encrypted) introduce(said);
  const Bytes frames = frames_of(rest, in_messages);
  const lightq::ByteView all = described ? lightq::ByteView(frames) : rest;
  said.insert(said.end(), all.begin(), all.end());
  connection->start();
  if (shared) {
    do_in_memory(line, host, rest, (data[0] & encrypted_bit) != 0);
  } else if (!encrypted) {
    line.send(said);
  } else if (in_messages) {
    say_over_curve(line, said);
  } else {
    say_over_tls(line, host, said);
  }
  if (!host.closed) turn(loop);
  if (!host.closed) connection->close("the end of the input");
  return 0;
}
