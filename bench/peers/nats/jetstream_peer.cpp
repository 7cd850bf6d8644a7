/// NATS JetStream: streams with push consumers, and with pull consumers in a work queue. Layer: bench peers.
#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <utility>

#include "peers/nats/nats_connection.hpp"
#include "peers/nats/nats_peer.hpp"
#include "peers/nats/nats_peer_server.hpp"
#include "peers/nats/nats_peers.hpp"
#include "peers/work/run_children.hpp"

namespace lightq::bench {
namespace {

constexpr std::int64_t unconfirmed_max = 4'096;
constexpr std::int64_t in_flight_max = 10'000;
constexpr std::int64_t deliveries_max = -1;  // no limit

constexpr int messages_per_receive = 500;
constexpr int unlimited = -1;

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
  /// A thread of nats.c sends its buffer.
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

/// The server pushes messages. The acknowledgement of one covers all before it.
class PushConsumer : public PeerConsumer {
 public:
  PushConsumer(std::uint16_t port, const QueueTerms& queue, int number) : stream_(port) {
    const std::string name = consumer_name(queue, number);
    jsSubOptions options;
    check_nats(jsSubOptions_Init(&options), "options");
    options.Stream = queue.name.c_str();
    options.Consumer = name.c_str();
    options.ManualAck = true;
    natsSubscription* subscription = nullptr;
    check_nats(js_SubscribeSync(&subscription, stream_.context.get(), queue.name.c_str(), nullptr, &options,
                                nullptr),
               "subscribing");
    subscription_.reset(subscription);
    check_nats(natsSubscription_SetPendingLimits(subscription, unlimited, unlimited), "limits");
  }

  std::size_t receive(std::chrono::milliseconds wait, const Take& take) override {
    NatsOwner<natsMsg> last;
    std::size_t count = 0;
    for (; count < messages_per_receive; ++count) {
      natsMsg* message = nullptr;
      const natsStatus status =
          natsSubscription_NextMsg(&message, subscription_.get(), count == 0 ? wait.count() : 0);
      if (status == NATS_TIMEOUT) break;
      check_nats(status, "receiving");
      last.reset(message);
      take(bytes_of(*message));
    }
    if (last) check_nats(natsMsg_Ack(last.get(), nullptr), "acknowledging");
    return count;
  }
  void settle() override {
    check_nats(natsConnection_FlushTimeout(stream_.connection.get(), peer_patience.count()), "flush");
  }

 private:
  JetStream stream_;
  NatsOwner<natsSubscription> subscription_;
};

/// Fetches one message at a time, and acknowledges each.
class PullConsumer : public PeerConsumer {
 public:
  PullConsumer(std::uint16_t port, const QueueTerms& queue, int number) : stream_(port) {
    const std::string name = consumer_name(queue, number);
    jsSubOptions options;
    check_nats(jsSubOptions_Init(&options), "options");
    options.Stream = queue.name.c_str();
    options.Consumer = name.c_str();
    natsSubscription* subscription = nullptr;
    check_nats(js_PullSubscribe(&subscription, stream_.context.get(), queue.name.c_str(), name.c_str(),
                                nullptr, &options, nullptr),
               "subscribing");
    subscription_.reset(subscription);
  }

  std::size_t receive(std::chrono::milliseconds wait, const Take& take) override {
    natsMsgList list{};
    const natsStatus status = natsSubscription_Fetch(&list, subscription_.get(), 1,
                                                     std::max<std::int64_t>(wait.count(), 1), nullptr);
    if (status == NATS_TIMEOUT) return 0;
    check_nats(status, "fetching");
    const NatsOwner<natsMsg> message(list.Count > 0 ? std::exchange(list.Msgs[0], nullptr) : nullptr);
    natsMsgList_Destroy(&list);
    if (!message) return 0;
    take(bytes_of(*message));
    check_nats(natsMsg_Ack(message.get(), nullptr), "acknowledging");
    return 1;
  }
  void settle() override {
    check_nats(natsConnection_FlushTimeout(stream_.connection.get(), peer_patience.count()), "flush");
  }

 private:
  JetStream stream_;
  NatsOwner<natsSubscription> subscription_;
};

class JetStreamServer : public NatsPeerServer {
 public:
  JetStreamServer(const std::string& program, Storage storage) : NatsPeerServer(program, true, storage) {}

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
    check_nats(js_DeleteStream(stream.context.get(), queue.name.c_str(), nullptr, nullptr),
               "deleting a stream");
  }
  std::optional<std::uint64_t> left(const QueueTerms& queue) override {
    const JetStream stream(server().port());
    const int consumers = queue.pattern == Pattern::fan_out ? queue.consumers : 1;
    std::uint64_t count = 0;
    for (int i = 0; i < consumers; ++i) {
      jsConsumerInfo* info = nullptr;
      check_nats(js_GetConsumerInfo(&info, stream.context.get(), queue.name.c_str(),
                                    consumer_name(queue, i).c_str(), nullptr, nullptr),
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
    if (queue.pattern == Pattern::work_queue)
      return std::make_unique<PullConsumer>(server().port(), queue, number);
    return std::make_unique<PushConsumer>(server().port(), queue, number);
  }

 private:
  void make_consumer(const QueueTerms& queue, int number) {
    const std::string name = consumer_name(queue, number);
    jsConsumerConfig consumer;
    check_nats(jsConsumerConfig_Init(&consumer), "options");
    consumer.Durable = name.c_str();
    const bool pulls = queue.pattern == Pattern::work_queue;
    const std::string deliveries = "deliver." + queue.name + "." + name;
    if (!pulls) consumer.DeliverSubject = deliveries.c_str();
    consumer.AckPolicy = pulls ? js_AckExplicit : js_AckAll;
    consumer.MaxAckPending = in_flight_max;
    consumer.MaxDeliver = deliveries_max;
    check_nats(
        js_AddConsumer(nullptr, maker_->context.get(), queue.name.c_str(), &consumer, nullptr, nullptr),
        "making a consumer");
  }
  std::optional<JetStream> maker_;
};

class JetStreamPeer : public NatsPeer {
 public:
  using NatsPeer::NatsPeer;
  [[nodiscard]] std::string name() const override { return "jetstream"; }
  [[nodiscard]] std::string way() const override {
    return "asynchronous publishing, up to 4,096 unconfirmed; push consumers, which acknowledge up to 500 "
           "messages with the last one; pull consumers in the work queue";
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
