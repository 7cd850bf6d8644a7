/// Fuzz target: whatever the client of a session sends, over either carrier and in whatever pieces, ends in
/// an answer or a closed connection. The input's first byte chooses the carrier, and whether the rest is what
/// the client sends or describes frames, which get their length and their checksum here; the second how it is
/// cut.
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "broker/session/session_connection.hpp"

namespace lightq::broker {
namespace {

class Host final : public SessionConnection::Host, public Connection::Owner {
 public:
  std::optional<Permit> permit_of(std::string_view ticket) override {
    if (ticket.size() > session::ticket_bytes_max) std::abort();
    if (ticket.starts_with("x")) return std::nullopt;
    return Permit{{TopicId{1}, EndpointRole::produce}, {}};
  }
  [[nodiscard]] bool is_good(const Permit&, const HostedTopic&) const override { return true; }
  HostedTopic* find_topic(TopicId) override { return nullptr; }
  void session_opened(SessionConnection&) override {}
  [[nodiscard]] std::uint64_t message_bytes_max() const override { return 100'000; }
  [[nodiscard]] const SessionSettings& session_settings() const override { return settings_; }
  void connection_opened(Connection&) override {}
  void connection_closed(Connection&, const std::string&) override { closed = true; }
  [[nodiscard]] const Gate* gate() const override { return nullptr; }
  [[nodiscard]] std::chrono::milliseconds handshake_time() const override { return std::chrono::seconds(5); }

  bool closed = false;

 private:
  SessionSettings settings_{.broker = 1, .heartbeat_ms = 0};
};

void turn(EventLoop& loop) {
  std::stop_source stop;
  loop.post_answer([&] { stop.request_stop(); });
  loop.run(stop.get_token());
}

/// What a ZeroMQ peer says before its first message.
void introduce(std::vector<std::byte>& to) {
  ZmtpHandshake("DEALER", {}).begin(to);
  zmtp::append_ready(to, "DEALER");
}

/// Takes frames off `from`: op, flags, channel, request, a u16 with the length of the body, the body.
std::vector<std::byte> frames_of(ByteView from, bool in_messages) {
  using namespace session::frame_layout;
  constexpr std::size_t head_bytes = 6;
  std::vector<std::byte> made;
  while (from.size() >= head_bytes) {
    const std::size_t body_bytes =
        std::min<std::size_t>(load_little_endian<std::uint16_t>(from.data() + 4), from.size() - head_bytes);
    std::vector<std::byte> frame(header_bytes + body_bytes);
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

}  // namespace
}  // namespace lightq::broker

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lightq::broker;
  if (size < 3) return 0;
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) std::abort();
  const UniqueFd peer(pair[1]);
  Host host;
  EventLoop loop;
  std::vector<std::byte> scratch(256 * lightq::limits::KiB);
  const bool in_messages = (data[0] & 1) != 0;
  const bool described = (data[0] & 2) != 0;
  const auto connection =
      std::make_unique<SessionConnection>(loop, UniqueFd(pair[0]), host, scratch, host, 1,
                                          in_messages ? SessionCarrier::zmtp : SessionCarrier::stream);
  const lightq::ByteView rest(reinterpret_cast<const std::byte*>(data) + 2, size - 2);
  std::vector<std::byte> said;
  if (in_messages && described) introduce(said);
  const std::vector<std::byte> frames = frames_of(rest, in_messages);
  const lightq::ByteView all = described ? lightq::ByteView(frames) : rest;
  said.insert(said.end(), all.begin(), all.end());
  connection->start();
  const std::size_t step = data[1] + std::size_t{1};
  for (std::size_t at = 0; at < said.size() && !host.closed; at += step) {
    send(peer.get(), said.data() + at, std::min(step, said.size() - at), MSG_NOSIGNAL | MSG_DONTWAIT);
    turn(loop);
  }
  if (!host.closed) turn(loop);
  if (!host.closed) connection->close("the end of the input");
  return 0;
}
