/// NATS JetStream: streams with pull consumers. Layer: bench peers.
#include <algorithm>
#include <atomic>
#include <stdexcept>

#include "peers/nats_connection.hpp"
#include "peers/nats_peers.hpp"
#include "peers/run_children.hpp"

namespace lightq::bench {
namespace {

constexpr std::int64_t unconfirmed_max = 4'096;
constexpr int messages_per_fetch = 500;
constexpr std::int64_t in_flight_max = 10'000;
constexpr std::int64_t deliveries_max = -1;  // no limit

std::string consumer_name(const QueueTerms& queue, int number) {
  return "reader-" + std::to_string(queue.pattern == Pattern::fan_out ? number : 0);
}

/// A connection and its JetStream context.
struct JetStream {
  explicit JetStream(std::uint16_t port, jsOptions* options = nullptr) : connection(connect_nats(port)) {
    jsCtx* made = nullptr;
    check_nats(natsConnection_JetStream(&made, connection.get(), options), "JetStream");
    context.reset(made);
  }
  NatsOwner<natsConnection> connection;
  NatsOwner<jsCtx> context;
};

/// Counts confirms in a thread of nats.c.
class JetStreamProducer : public PeerProducer {
 public:
  JetStreamProducer(std::uint16_t port, std::string subject) : subject_(std::move(subject)) {
    jsOptions options;
    check_nats(jsOptions_Init(&options), "options");
    options.PublishAsync.MaxPending = unconfirmed_max;
    options.PublishAsync.StallWait = peer_patience.count();
    options.PublishAsync.AckHandler = note_confirm;
    options.PublishAsync.AckHandlerClosure = this;
    stream_.emplace(port, &options);
  }
  ~JetStreamProducer() override {
    stream_->context.reset();
    natsConnection_Close(stream_->connection.get());
  }
  void send(ByteView message) override {
    check_nats(js_PublishAsync(stream_->context.get(), subject_.c_str(), message.data(),
                               static_cast<int>(message.size()), nullptr),
               "publishing");
    ++sent_;
    throw_refused();
  }
  /// nats.c sends what it has buffered from a thread of its own.
  void poll() override { throw_refused(); }
  void flush() override {
    jsPubOptions options;
    check_nats(jsPubOptions_Init(&options), "options");
    options.MaxWait = peer_patience.count();
    check_nats(js_PublishAsyncComplete(stream_->context.get(), &options), "waiting for confirms");
    const Clock::time_point give_up = Clock::now() + peer_patience;
    while (confirmed_ < sent_ && Clock::now() < give_up) {  // until the last call of the handler
      throw_refused();
      sleep_exactly(std::chrono::microseconds(50));
    }
  }
  [[nodiscard]] std::uint64_t confirmed() const override { return confirmed_; }

 private:
  static void note_confirm(jsCtx*, natsMsg* message, jsPubAck* confirm, jsPubAckErr*, void* closure) {
    auto& producer = *static_cast<JetStreamProducer*>(closure);
    ++(confirm != nullptr ? producer.confirmed_ : producer.refused_);
    natsMsg_Destroy(message);
  }
  void throw_refused() const {
    if (refused_ > 0) throw std::runtime_error("JetStream refused a message");
  }
  std::string subject_;
  std::optional<JetStream> stream_;
  std::uint64_t sent_ = 0;
  std::atomic<std::uint64_t> confirmed_{0};
  std::atomic<std::uint64_t> refused_{0};
};

class JetStreamConsumer : public PeerConsumer {
 public:
  JetStreamConsumer(std::uint16_t port, const QueueTerms& queue, int number)
      : stream_(port), single_(queue.pattern == Pattern::work_queue) {
    const std::string name = consumer_name(queue, number);
    jsSubOptions options;
    check_nats(jsSubOptions_Init(&options), "options");
    options.Stream = queue.name.c_str();
    options.Consumer = name.c_str();
    natsSubscription* subscription = nullptr;
    check_nats(js_PullSubscribe(&subscription, stream_.context.get(), queue.name.c_str(), name.c_str(), nullptr,
                                &options, nullptr),
               "subscribing");
    subscription_.reset(subscription);
  }

  /// A fetch returns when it has all messages that it asked for, or after `wait` those that came.
  std::size_t receive(std::chrono::milliseconds wait, const Take& take) override {
    natsMsgList list{};
    const natsStatus status =
        natsSubscription_Fetch(&list, subscription_.get(), wanted_, std::max<std::int64_t>(wait.count(), 1), nullptr);
    if (status == NATS_TIMEOUT) {
      wanted_ = 1;
      return 0;
    }
    check_nats(status, "fetching");
    const auto count = static_cast<std::size_t>(list.Count);
    try {
      for (std::size_t i = 0; i < count; ++i) {
        take(bytes_of(*list.Msgs[i]));
        if (single_) check_nats(natsMsg_Ack(list.Msgs[i], nullptr), "acknowledging");
      }
      // The acknowledgement of a message covers all before it.
      if (!single_ && count > 0) check_nats(natsMsg_Ack(list.Msgs[count - 1], nullptr), "acknowledging");
    } catch (...) {
      natsMsgList_Destroy(&list);
      throw;
    }
    // Asks for as many as are likely to be there, because a fetch waits for all of them.
    if (!single_) wanted_ = static_cast<int>(count) < wanted_ ? 1 : std::min(2 * wanted_, messages_per_fetch);
    natsMsgList_Destroy(&list);
    return count;
  }
  void settle() override {
    check_nats(natsConnection_FlushTimeout(stream_.connection.get(), peer_patience.count()), "flush");
  }

 private:
  JetStream stream_;
  NatsOwner<natsSubscription> subscription_;
  bool single_;
  int wanted_ = 1;
};

class JetStreamServer : public NatsServer {
 public:
  JetStreamServer(const std::string& program, Storage storage) : NatsServer(program, true, storage) {}

  void make_queue(const QueueTerms& queue) override {
    if (!maker_) maker_.emplace(server().port());
    const char* subjects[] = {queue.name.c_str()};
    jsStreamConfig stream;
    check_nats(jsStreamConfig_Init(&stream), "options");
    stream.Name = queue.name.c_str();
    stream.Subjects = subjects;
    stream.SubjectsLen = 1;
    stream.Storage = queue.storage == Storage::memory ? js_MemoryStorage : js_FileStorage;
    // Removes messages when all consumers have acknowledged them.
    stream.Retention = js_InterestPolicy;
    check_nats(js_AddStream(nullptr, maker_->context.get(), &stream, nullptr, nullptr), "making a stream");
    const int consumers = queue.pattern == Pattern::fan_out ? queue.consumers : 1;
    for (int i = 0; i < consumers; ++i) make_consumer(queue, i);
  }
  void drop_queue(const QueueTerms& queue) override {
    const JetStream stream(server().port());
    check_nats(js_DeleteStream(stream.context.get(), queue.name.c_str(), nullptr, nullptr), "deleting a stream");
  }
  std::optional<std::uint64_t> left(const QueueTerms& queue) override {
    const JetStream stream(server().port());
    const int consumers = queue.pattern == Pattern::fan_out ? queue.consumers : 1;
    std::uint64_t count = 0;
    for (int i = 0; i < consumers; ++i) {
      jsConsumerInfo* info = nullptr;
      check_nats(js_GetConsumerInfo(&info, stream.context.get(), queue.name.c_str(), consumer_name(queue, i).c_str(),
                                    nullptr, nullptr),
                 "asking for a consumer");
      count += info->NumPending + static_cast<std::uint64_t>(std::max<std::int64_t>(info->NumAckPending, 0));
      jsConsumerInfo_Destroy(info);
    }
    return count;
  }
  std::unique_ptr<PeerProducer> producer(const QueueTerms& queue) override {
    return std::make_unique<JetStreamProducer>(server().port(), queue.name);
  }
  std::unique_ptr<PeerConsumer> consumer(const QueueTerms& queue, int number) override {
    return std::make_unique<JetStreamConsumer>(server().port(), queue, number);
  }

 private:
  void make_consumer(const QueueTerms& queue, int number) {
    const std::string name = consumer_name(queue, number);
    jsConsumerConfig consumer;
    check_nats(jsConsumerConfig_Init(&consumer), "options");
    consumer.Durable = name.c_str();
    consumer.AckPolicy = queue.pattern == Pattern::work_queue ? js_AckExplicit : js_AckAll;
    consumer.MaxAckPending = in_flight_max;
    consumer.MaxDeliver = deliveries_max;
    check_nats(js_AddConsumer(nullptr, maker_->context.get(), queue.name.c_str(), &consumer, nullptr, nullptr),
               "making a consumer");
  }
  std::optional<JetStream> maker_;
};

class JetStreamPeer : public NatsPeer {
 public:
  using NatsPeer::NatsPeer;
  [[nodiscard]] std::string name() const override { return "jetstream"; }
  [[nodiscard]] std::string way() const override {
    return "asynchronous publishing, up to 4,096 unconfirmed; a pull consumer that fetches up to 500 messages and "
           "acknowledges the last one for all";
  }
  [[nodiscard]] Promise promise(Work) const override { return {}; }
  std::unique_ptr<PeerServer> start(Storage storage) const override {
    return std::make_unique<JetStreamServer>(program().value(), storage);
  }
};

}  // namespace

std::unique_ptr<Peer> make_jetstream_peer(std::string directory) {
  return std::make_unique<JetStreamPeer>(std::move(directory));
}

}  // namespace lightq::bench
