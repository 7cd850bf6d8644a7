/// PUSH and PULL sockets with zmq_proxy in between. Layer: bench peers.
#include "peers/zmq_proxy_peer.hpp"

#include <csignal>
#include <stdexcept>
#include <zmq.hpp>

#include "support/proxy_route.hpp"
#include "support/stream_roles.hpp"

namespace lightq::bench {
namespace {

/// Sends with PUSH. A socket's thread does the rest, and closing waits for it.
class ZmqProducer : public PeerProducer {
 public:
  explicit ZmqProducer(const std::string& uri)
      : context_(1), socket_(client_socket(context_, zmq::socket_type::push)) {
    socket_.set(zmq::sockopt::sndtimeo, static_cast<int>(peer_patience.count()));
    socket_.connect(uri);
  }
  void send(ByteView message) override {
    if (!socket_.send(zmq::buffer(message.data(), message.size()), zmq::send_flags::none))
      throw std::runtime_error("zmq_proxy takes no message");
  }
  void poll() override {}
  void flush() override {}
  [[nodiscard]] std::uint64_t confirmed() const override { return 0; }

 private:
  zmq::context_t context_;
  zmq::socket_t socket_;
};

class ZmqConsumer : public PeerConsumer {
 public:
  explicit ZmqConsumer(const std::string& uri)
      : context_(1), socket_(client_socket(context_, zmq::socket_type::pull)) {
    socket_.connect(uri);
  }
  std::size_t receive(std::chrono::milliseconds wait, const Take& take) override {
    if (!socket_.recv(message_, zmq::recv_flags::dontwait)) {
      socket_.set(zmq::sockopt::rcvtimeo, static_cast<int>(wait.count()));
      if (!socket_.recv(message_, zmq::recv_flags::none)) return 0;
    }
    take({static_cast<const std::byte*>(message_.data()), message_.size()});
    return 1;
  }
  void settle() override {}

 private:
  zmq::context_t context_;
  zmq::socket_t socket_;
  zmq::message_t message_;
};

class ZmqProxyServer : public PeerServer {
 public:
  ZmqProxyServer()
      : proxy_(ProxyRoute::start(client_high_water_messages).value_or_throw()),
        ends_(proxy_->open().value_or_throw()) {}
  /// The proxy has one queue.
  void make_queue(const QueueTerms&) override {}
  void drop_queue(const QueueTerms&) override {}
  std::optional<std::uint64_t> left(const QueueTerms&) override { return std::nullopt; }
  std::unique_ptr<PeerProducer> producer(const QueueTerms&) override {
    return std::make_unique<ZmqProducer>(ends_.producer_uri);
  }
  std::unique_ptr<PeerConsumer> consumer(const QueueTerms&, int) override {
    return std::make_unique<ZmqConsumer>(ends_.consumer_uri);
  }
  [[nodiscard]] pid_t process() const override { return proxy_->process().value(); }
  [[nodiscard]] std::string command() const override {
    return "zmq_proxy(PULL, PUSH), high-water mark " + std::to_string(client_high_water_messages);
  }
  void pause() override { ::kill(process(), SIGSTOP); }
  void resume() override { ::kill(process(), SIGCONT); }
  void kill() override { throw std::logic_error("zmq_proxy stores nothing"); }
  void restart() override { kill(); }

 private:
  std::unique_ptr<ProxyRoute> proxy_;
  StreamEnds ends_;
};

class ZmqProxyPeer : public Peer {
 public:
  [[nodiscard]] std::string name() const override { return "zmq-proxy"; }
  [[nodiscard]] std::optional<std::string> version() const override {
    const auto [major, minor, patch] = zmq::version();
    return "libzmq " + std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
  }
  [[nodiscard]] std::string needs() const override { return "nothing"; }
  [[nodiscard]] std::string way() const override { return "PUSH to the proxy, PULL from it"; }
  [[nodiscard]] bool confirms() const override { return false; }
  [[nodiscard]] Promise promise(Work work) const override {
    switch (work) {
      case Work::page_cache:
      case Work::synced:
      case Work::kill: return impossible("stores nothing");
      case Work::work_queue: return impossible("has no acknowledgements");
      case Work::fan_out: return impossible("PUB and SUB lose messages silently at full speed");
      case Work::idle: return {true, "has one queue, so 1,000 queues cost nothing here"};
      default: break;
    }
    return {true, "neither confirms nor acknowledgements: a killed process loses its messages"};
  }
  [[nodiscard]] bool has_one_server() const override { return true; }
  std::unique_ptr<PeerServer> start(Storage) const override { return std::make_unique<ZmqProxyServer>(); }
};

}  // namespace

std::unique_ptr<Peer> make_zmq_proxy_peer() {
  return std::make_unique<ZmqProxyPeer>();
}

}  // namespace lightq::bench
