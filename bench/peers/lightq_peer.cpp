/// LightQ's topics, producers and consumers as a peer's. Layer: bench peers.
#include "peers/lightq_peer.hpp"

#include <csignal>
#include <stdexcept>

#include <lightq/client.hpp>
#include <lightq/version.hpp>

#include "support/broker_route.hpp"

namespace lightq::bench {
namespace {

// A durable topic recycles its files with these settings, once it has filled them.
constexpr std::uint64_t retention_bytes = 256ull << 20;
constexpr std::uint64_t segment_bytes = 64ull << 20;

ConfirmLevel level_for(Storage storage) {
  switch (storage) {
    case Storage::memory:
    case Storage::page_cache: return ConfirmLevel::received;
    case Storage::synced: return ConfirmLevel::flushed;
    case Storage::standard: break;
  }
  return ConfirmLevel::topics_default;
}

class LightqProducer : public PeerProducer {
 public:
  explicit LightqProducer(Producer producer) : producer_(std::move(producer)) {}
  void send(ByteView message) override { producer_.send(message).value_or_throw(); }
  void poll() override { producer_.poll(Timeout(0)).value_or_throw(); }
  void flush() override { producer_.flush(peer_patience).value_or_throw(); }
  [[nodiscard]] std::uint64_t confirmed() const override { return producer_.confirmed(); }

 private:
  Producer producer_;
};

class LightqConsumer : public PeerConsumer {
 public:
  LightqConsumer(Consumer consumer, bool single) : consumer_(std::move(consumer)), single_(single) {}

  std::size_t receive(std::chrono::milliseconds wait, const Take& take) override {
    if (single_) return receive_one(wait, take);
    const auto batch = consumer_.receive_batch(wait).value_or_throw();
    if (!batch) return 0;
    std::size_t count = 0;
    for (const Delivered& message : *batch) {
      take(message.payload);
      ++count;
    }
    consumer_.acknowledge(*batch);
    return count;
  }
  void settle() override { consumer_.close(peer_patience).value_or_throw(); }

 private:
  std::size_t receive_one(std::chrono::milliseconds wait, const Take& take) {
    const auto message = consumer_.receive(wait).value_or_throw();
    if (!message) return 0;
    take(message->payload);
    consumer_.acknowledge(*message);
    return 1;
  }
  Consumer consumer_;
  bool single_;
};

class LightqServer : public PeerServer {
 public:
  LightqServer(const std::string& broker, std::optional<Transport> transport)
      : broker_(BrokerProcess::start(broker).value_or_throw()), transport_(transport) {}

  ~LightqServer() override { resume(); }  // a stopped process does not react to SIGTERM

  void make_queue(const QueueTerms& queue) override {
    TopicSettings settings;
    if (queue.storage != Storage::memory) settings.broker_type = BrokerType::file;
    if (queue.storage == Storage::page_cache || queue.storage == Storage::synced) {
      settings.retention_bytes = retention_bytes;
      settings.segment_bytes = segment_bytes;
    }
    client().create_topic(queue.name, settings).value_or_throw();
  }
  void drop_queue(const QueueTerms& queue) override { client().delete_topic(queue.name).value_or_throw(); }
  std::optional<std::uint64_t> left(const QueueTerms& queue) override {
    std::uint64_t pending = 0;
    for (const auto& group : client().stats(queue.name).value_or_throw().groups) pending += group.pending;
    return pending;
  }
  std::unique_ptr<PeerProducer> producer(const QueueTerms& queue) override {
    ProducerOptions options;
    options.level = level_for(queue.storage);
    return std::make_unique<LightqProducer>(
        client().producer(queue.name, options, transport_).value_or_throw());
  }
  std::unique_ptr<PeerConsumer> consumer(const QueueTerms& queue, int number) override {
    ConsumerOptions options;
    if (queue.pattern == Pattern::fan_out) {
      options.mode = ConsumeMode::own;
      options.group = "reader-" + std::to_string(number);
      options.holds = true;
    }
    auto consumer = client().consumer(queue.name, options, transport_).value_or_throw();
    consumer.wait_open(peer_patience).value_or_throw();
    return std::make_unique<LightqConsumer>(std::move(consumer), queue.pattern == Pattern::work_queue);
  }

  [[nodiscard]] pid_t process() const override { return broker_->id(); }
  [[nodiscard]] std::string command() const override {
    return "lightq broker --data-dir DIR --control tcp://127.0.0.1:0";
  }
  void pause() override { ::kill(broker_->id(), SIGSTOP); }
  void resume() final { ::kill(broker_->id(), SIGCONT); }
  void kill() override { broker_->stop(SIGKILL).value_or_throw(); }
  void restart() override { broker_->start_again().value_or_throw(); }

 private:
  [[nodiscard]] Client client() const {
    ClientOptions options;
    options.admin = {"lightq_admin", broker_->admin_password()};
    options.user = {bench_user, bench_password};
    options.discover_credentials = false;
    options.server_key = broker_->control().server_key();
    return Client::connect(broker_->control().uri(), std::move(options)).value_or_throw();
  }
  std::unique_ptr<BrokerProcess> broker_;
  std::optional<Transport> transport_;
};

class LightqPeer : public Peer {
 public:
  LightqPeer(std::string broker, std::optional<Transport> transport)
      : broker_(std::move(broker)), transport_(transport) {}
  [[nodiscard]] std::string name() const override { return transport_ ? "lightq-tcp" : "lightq"; }
  [[nodiscard]] std::optional<std::string> version() const override {
    return "LightQ " + std::string(lightq::version_text) + ", its C++ client";
  }
  [[nodiscard]] std::string needs() const override { return "nothing"; }
  [[nodiscard]] std::string way() const override {
    return transport_
               ? "default options, over TCP as between machines"
               : "default options, which use shared memory on one machine; batches are acknowledged whole";
  }
  [[nodiscard]] Promise promise(Work) const override { return {}; }
  [[nodiscard]] bool has_one_server() const override { return true; }
  std::unique_ptr<PeerServer> start(Storage) const override {
    return std::make_unique<LightqServer>(broker_, transport_);
  }

 private:
  std::string broker_;
  std::optional<Transport> transport_;
};

}  // namespace

std::unique_ptr<Peer> make_lightq_peer(std::string broker) {
  return std::make_unique<LightqPeer>(std::move(broker), std::nullopt);
}

std::unique_ptr<Peer> make_lightq_tcp_peer(std::string broker) {
  return std::make_unique<LightqPeer>(std::move(broker), Transport::tcp);
}

}  // namespace lightq::bench
