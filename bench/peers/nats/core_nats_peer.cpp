/// Core NATS: subjects without a store. Layer: bench peers.
#include <stdexcept>

#include "peers/nats/nats_connection.hpp"
#include "peers/nats/nats_peer.hpp"
#include "peers/nats/nats_peer_server.hpp"
#include "peers/nats/nats_peers.hpp"

namespace lightq::bench {
namespace {

constexpr int unlimited = -1;

class NatsProducer : public PeerProducer {
 public:
  NatsProducer(std::uint16_t port, std::string subject)
      : connection_(connect_nats(port)), subject_(std::move(subject)) {}
  void send(ByteView message) override {
    check_nats(natsConnection_Publish(connection_.get(), subject_.c_str(), message.data(),
                                      static_cast<int>(message.size())),
               "publishing");
  }
  /// A thread of nats.c sends its buffer.
  void poll() override {}
  void flush() override {
    check_nats(natsConnection_FlushTimeout(connection_.get(), peer_patience.count()), "flush");
  }
  [[nodiscard]] std::uint64_t confirmed() const override { return 0; }

 private:
  NatsOwner<natsConnection> connection_;
  std::string subject_;
};

class NatsConsumer : public PeerConsumer {
 public:
  NatsConsumer(std::uint16_t port, const std::string& subject) : connection_(connect_nats(port)) {
    natsSubscription* subscription = nullptr;
    check_nats(natsConnection_SubscribeSync(&subscription, connection_.get(), subject.c_str()),
               "subscribing");
    subscription_.reset(subscription);
    check_nats(natsSubscription_SetPendingLimits(subscription, unlimited, unlimited), "limits");
    check_nats(natsConnection_FlushTimeout(connection_.get(), peer_patience.count()), "flush");
  }
  std::size_t receive(std::chrono::milliseconds wait, const Take& take) override {
    natsMsg* message = nullptr;
    const natsStatus status = natsSubscription_NextMsg(&message, subscription_.get(), wait.count());
    if (status == NATS_TIMEOUT) return 0;
    check_nats(status, "receiving");
    const NatsOwner<natsMsg> owned(message);
    take(bytes_of(*message));
    return 1;
  }
  void settle() override {}

 private:
  NatsOwner<natsConnection> connection_;
  NatsOwner<natsSubscription> subscription_;
};

class CoreServer : public NatsPeerServer {
 public:
  CoreServer(const std::string& program, Storage storage) : NatsPeerServer(program, false, storage) {}
  /// A subject exists while somebody subscribes to it.
  void make_queue(const QueueTerms& queue) override {
    if (queue.pattern != Pattern::idle) return;
    if (!watcher_) watcher_ = connect_nats(server().port());
    natsSubscription* subscription = nullptr;
    check_nats(natsConnection_SubscribeSync(&subscription, watcher_.get(), queue.name.c_str()),
               "subscribing");
    check_nats(natsConnection_FlushTimeout(watcher_.get(), peer_patience.count()), "flush");
    subscriptions_.emplace_back(subscription);
  }
  void drop_queue(const QueueTerms&) override {}
  std::optional<std::uint64_t> left(const QueueTerms&) override { return std::nullopt; }
  std::unique_ptr<PeerProducer> producer(const QueueTerms& queue) override {
    return std::make_unique<NatsProducer>(server().port(), queue.name);
  }
  std::unique_ptr<PeerConsumer> consumer(const QueueTerms& queue, int) override {
    return std::make_unique<NatsConsumer>(server().port(), queue.name);
  }

 private:
  NatsOwner<natsConnection> watcher_;
  std::vector<NatsOwner<natsSubscription>> subscriptions_;
};

class CorePeer : public NatsPeer {
 public:
  using NatsPeer::NatsPeer;
  [[nodiscard]] std::string name() const override { return "nats"; }
  [[nodiscard]] std::string way() const override {
    return "asynchronous publishing, one flush at the end; a synchronous subscription without limits";
  }
  [[nodiscard]] bool confirms() const override { return false; }
  [[nodiscard]] Promise promise(Work work) const override {
    switch (work) {
      case Work::page_cache:
      case Work::synced:
      case Work::kill: return impossible("stores nothing; see jetstream");
      case Work::work_queue: return impossible("has no acknowledgements; see jetstream");
      case Work::idle: return {true, "a subject without subscribers does not exist: each has one here"};
      default: break;
    }
    return {true,
            "neither confirms nor acknowledgements: messages are lost without a subscriber, or if it lags "
            "too far"};
  }
  std::unique_ptr<PeerServer> start(Storage storage) const override {
    return std::make_unique<CoreServer>(program().value(), storage);
  }
};

}  // namespace

std::unique_ptr<Peer> make_nats_peer(std::string directory) {
  return std::make_unique<CorePeer>(std::move(directory));
}

}  // namespace lightq::bench
