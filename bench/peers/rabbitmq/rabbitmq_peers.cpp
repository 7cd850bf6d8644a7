/// RabbitMQ's classic queues, quorum queues and streams. Layer: bench peers.
#include "peers/rabbitmq/rabbitmq_peers.hpp"

#include <amqp.h>

#include <stdexcept>

#include "peers/needs.hpp"
#include "peers/rabbitmq/rabbitmq_clients.hpp"
#include "peers/rabbitmq/rabbitmq_server.hpp"
#include "peers/work/run_children.hpp"

namespace lightq::bench {
namespace {

constexpr std::chrono::seconds open_time_max{60};
constexpr std::chrono::seconds settle_time{3};
constexpr std::chrono::milliseconds open_retry_interval{200};

enum class QueueType { classic, quorum, stream };

const char* text_of(QueueType type) {
  switch (type) {
    case QueueType::classic: return "classic";
    case QueueType::quorum: return "quorum";
    case QueueType::stream: break;
  }
  return "stream";
}

class RabbitServer : public RabbitNode {
 public:
  explicit RabbitServer(QueueType type) : type_(type) {}

  /// All consumers of a stream read the same queue. Other queues of a fan-out are bound to an exchange.
  void make_queue(const QueueTerms& queue) override {
    if (!maker_) maker_ = std::make_unique<RabbitConnection>(server().port());
    const bool has_exchange = spreads(queue);
    if (has_exchange) {
      amqp_exchange_declare(maker_->state(), channel, amqp_bytes_of(queue.name), amqp_cstring_bytes("fanout"),
                            0, durable(queue), 0, 0, amqp_empty_table);
      maker_->check_reply("making an exchange");
    }
    for (int i = 0; i < queues_of(queue); ++i) {
      const std::string name = name_of(queue, i);
      declare(*maker_, name, durable(queue), false);
      if (!has_exchange) continue;
      amqp_queue_bind(maker_->state(), channel, amqp_bytes_of(name), amqp_bytes_of(queue.name),
                      amqp_empty_bytes, amqp_empty_table);
      maker_->check_reply("binding a queue");
    }
    // The list of replicas reaches the disk some time after a queue was made. Without it a killed node does
    // not find the queue again.
    if (queue.storage == Storage::standard && queue.pattern != Pattern::idle) sleep_exactly(settle_time);
  }
  void drop_queue(const QueueTerms& queue) override {
    RabbitConnection connection(server().port());
    for (int i = 0; i < queues_of(queue); ++i) {
      const std::string name = name_of(queue, i);
      amqp_queue_delete(connection.state(), channel, amqp_bytes_of(name), 0, 0);
      connection.check_reply("deleting a queue");
    }
    if (!spreads(queue)) return;
    amqp_exchange_delete(connection.state(), channel, amqp_bytes_of(queue.name), 0);
    connection.check_reply("deleting an exchange");
  }
  /// Messages that the consumers left unacknowledged are in the queue again, as the consumers have ended.
  std::optional<std::uint64_t> left(const QueueTerms& queue) override {
    if (type_ == QueueType::stream) return std::nullopt;
    RabbitConnection connection(server().port());
    std::uint64_t count = 0;
    for (int i = 0; i < queues_of(queue); ++i)
      count += declare(connection, name_of(queue, i), durable(queue), true);
    return count;
  }
  std::unique_ptr<PeerProducer> producer(const QueueTerms& queue) override {
    return std::make_unique<RabbitProducer>(server().port(), spreads(queue) ? queue.name : "",
                                            spreads(queue) ? "" : queue.name, durable(queue));
  }
  /// Tries for a minute: after a restart, quorum queues and streams need time to elect a leader.
  std::unique_ptr<PeerConsumer> consumer(const QueueTerms& queue, int number) override {
    const Clock::time_point give_up = Clock::now() + open_time_max;
    for (;;) {
      try {
        return std::make_unique<RabbitConsumer>(server().port(), name_of(queue, spreads(queue) ? number : 0),
                                                queue.pattern == Pattern::work_queue,
                                                type_ == QueueType::stream);
      } catch (const std::runtime_error&) {
        if (Clock::now() > give_up) throw;
        sleep_exactly(open_retry_interval);
      }
    }
  }

 private:
  static constexpr amqp_channel_t channel = RabbitConnection::channel;

  [[nodiscard]] bool durable(const QueueTerms& queue) const {
    return type_ != QueueType::classic || queue.storage != Storage::memory;
  }
  [[nodiscard]] bool spreads(const QueueTerms& queue) const {
    return queue.pattern == Pattern::fan_out && type_ != QueueType::stream;
  }
  [[nodiscard]] int queues_of(const QueueTerms& queue) const { return spreads(queue) ? queue.consumers : 1; }
  [[nodiscard]] std::string name_of(const QueueTerms& queue, int number) const {
    return spreads(queue) ? queue.name + "-" + std::to_string(number) : queue.name;
  }
  /// Makes a queue, or looks at one that exists (`passive`). Returns the number of its messages.
  std::uint64_t declare(RabbitConnection& connection, const std::string& name, bool durable,
                        bool passive) const {
    amqp_table_entry_t type{};
    type.key = amqp_cstring_bytes("x-queue-type");
    type.value.kind = AMQP_FIELD_KIND_UTF8;
    type.value.value.bytes = amqp_cstring_bytes(text_of(type_));
    const amqp_table_t arguments{1, &type};
    const auto* const found = amqp_queue_declare(connection.state(), channel, amqp_bytes_of(name), passive,
                                                 durable, 0, 0, arguments);
    connection.check_reply("making a queue");
    return found->message_count;
  }

  QueueType type_;
  std::unique_ptr<RabbitConnection> maker_;
};

class RabbitPeer : public Peer {
 public:
  explicit RabbitPeer(QueueType type) : type_(type) {}
  [[nodiscard]] std::string name() const override { return "rabbitmq-" + std::string(text_of(type_)); }
  [[nodiscard]] std::optional<std::string> version() const override {
    if (!RabbitNode::program()) return std::nullopt;
    return "RabbitMQ " + RabbitNode::version() + ", librabbitmq " + amqp_version();
  }
  [[nodiscard]] std::string needs() const override { return rabbitmq_needs; }
  [[nodiscard]] std::string way() const override {
    return "publisher confirms, up to 2,000 unconfirmed; prefetch 2,000, up to 500 messages acknowledged "
           "with the last "
           "one; prefetch 1 in the work queue; AMQP 0-9-1";
  }
  [[nodiscard]] Promise promise(Work work) const override {
    switch (type_) {
      case QueueType::classic:
        if (work == Work::page_cache) return impossible("confirms durable messages after fsync only");
        return {};
      case QueueType::quorum:
        if (work == Work::memory || work == Work::page_cache) return impossible("confirms after fsync only");
        return {};
      case QueueType::stream: break;
    }
    if (work == Work::memory) return impossible("stores on disk");
    if (work == Work::synced) return impossible("never waits for fsync");
    if (work == Work::work_queue) return impossible("all consumers receive all messages");
    return {true, "a consumer's acknowledgements only ask for more: its program keeps its position"};
  }
  [[nodiscard]] bool has_one_server() const override { return true; }
  std::unique_ptr<PeerServer> start(Storage) const override { return std::make_unique<RabbitServer>(type_); }

 private:
  QueueType type_;
};

}  // namespace

std::unique_ptr<Peer> make_rabbitmq_classic_peer() {
  return std::make_unique<RabbitPeer>(QueueType::classic);
}

std::unique_ptr<Peer> make_rabbitmq_quorum_peer() {
  return std::make_unique<RabbitPeer>(QueueType::quorum);
}

std::unique_ptr<Peer> make_rabbitmq_stream_peer() {
  return std::make_unique<RabbitPeer>(QueueType::stream);
}

}  // namespace lightq::bench
