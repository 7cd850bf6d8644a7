/// Fuzz target: a peer of a plain endpoint or of the control socket sends any bytes in any pieces. The broker
/// must answer or close the connection. The input's first byte chooses the kind of connection and the
/// authorizer: none, one that requires a ticket, or one that admits every peer. The second byte is one less
/// than the length of a piece.
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <stop_token>

#include "access/connection_authorizer.hpp"
#include "control/control_connection.hpp"
#include "plain/plain_producer_connection.hpp"
#include "plain/zmtp_consumer_connection.hpp"

namespace lightq::broker {
namespace {

class Host final : public PlainProducerHost,
                   public PlainConsumerHost,
                   public ZmtpConnection::Owner,
                   public ControlConnection::Requests {
 public:
  [[nodiscard]] bool accepting() const override { return true; }
  PublishOutcome publish(BatchBuilder& batch) override {
    const auto bytes = batch.finish();
    stamp_batch(bytes, Offset{0}, Timestamp{1}, 1);
    if (BatchView::check(bytes).has_value()) std::abort();
    return ++batches % 7 == 0 ? PublishOutcome::held : PublishOutcome::accepted;
  }
  void published() override {}
  void count_refused(std::uint64_t) override {}
  [[nodiscard]] std::uint64_t message_bytes_max() const override { return 100'000; }
  [[nodiscard]] std::size_t batch_bytes_target() const override { return 1000; }
  BatchBuilder& batch() override { return batch_; }
  void inlet_held() override {}
  void consumer_ready(PlainConsumerConnection&) override {}
  void consumer_unready(PlainConsumerConnection&) override {}
  void consumer_writable() override {}
  void connection_opened(Connection&) override {}
  void connection_closed(Connection&, const std::string&) override { closed = true; }
  [[nodiscard]] const ConnectionAuthorizer* authorizer() const override { return guard; }
  [[nodiscard]] std::chrono::milliseconds handshake_time() const override { return std::chrono::seconds(5); }

  void requested(const ControlConnection::Envelope& from,
                 const ControlConnection::Message& message) override {
    if (message.body.size() > lightq::limits::request_bytes_max + 1 || message.parts == 0) std::abort();
    if (message.body.size() > message.bytes) std::abort();
    if (from.frames.size() > ControlConnection::envelope_bytes_max + 2) std::abort();
    control->answer(from, message.body);
  }

  void limit_reached(Limit) override {}

  const ConnectionAuthorizer* guard = nullptr;
  ControlConnection* control = nullptr;
  bool closed = false;
  int batches = 0;

 private:
  BatchBuilder batch_;
};

/// The key of the tickets that make_corpus.py makes.
const TicketKey& ticket_key() {
  static const TicketKey key = [] {
    TicketKey::Bytes bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
    return TicketKey(bytes);
  }();
  return key;
}

void turn(EventLoop& loop) {
  std::stop_source stop;
  loop.post_answer([&] { stop.request_stop(); });
  loop.run(stop.get_token());
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
  const WallClock now = [] { return lightq::Timestamp{1'800'000'000'000'000}; };
  const ConnectionAuthorizer guarded(ticket_key(), now, {lightq::TopicId{1}, EndpointRole::produce});
  const ConnectionAuthorizer open;
  constexpr int kinds = 4;
  const int authorizer = data[0] / kinds % 3;
  if (authorizer > 0) host.guard = authorizer == 1 ? &guarded : &open;
  EventLoop loop;
  std::vector<std::byte> scratch(256 * lightq::limits::KiB);
  std::unique_ptr<Connection> connection;
  PlainProducerConnection* inlet = nullptr;
  if (data[0] % 4 == 3) {
    auto made = std::make_unique<ControlConnection>(loop, UniqueFd(pair[0]), host, scratch, 1, host);
    host.control = made.get();
    connection = std::move(made);
  } else if (data[0] % 4 == 0) {
    auto made = std::make_unique<PlainProducerConnection>(loop, UniqueFd(pair[0]), host, scratch, host);
    inlet = made.get();
    connection = std::move(made);
  } else if (data[0] % 4 == 1) {
    connection = std::make_unique<PullConsumerConnection>(loop, UniqueFd(pair[0]), host, scratch, host);
  } else {
    connection = std::make_unique<SubConsumerConnection>(loop, UniqueFd(pair[0]), host, scratch, host,
                                                         *lightq::TopicName::parse("topic"));
  }
  connection->start();
  const std::size_t step = data[1] + std::size_t{1};
  for (std::size_t at = 2; at < size && !host.closed; at += step) {
    send(peer.get(), data + at, std::min(step, size - at), MSG_NOSIGNAL | MSG_DONTWAIT);
    turn(loop);
    if (inlet != nullptr && inlet->held()) inlet->resume();
  }
  if (!host.closed) turn(loop);
  if (!host.closed) connection->close("the end of the input");
  return 0;
}
