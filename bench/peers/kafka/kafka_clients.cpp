/// Clients of Kafka. Layer: bench peers.
#include "peers/kafka/kafka_clients.hpp"

#include <algorithm>
#include <stdexcept>

#include "support/posix.hpp"

namespace lightq::bench {
namespace {

constexpr std::uint64_t messages_per_poll = 64;
constexpr std::size_t messages_per_receive = 500;
constexpr int patience_ms = static_cast<int>(peer_patience.count());
constexpr std::size_t error_bytes = 512;
constexpr std::int32_t the_partition = 0;

void check(rd_kafka_resp_err_t error, const char* what) {
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
    throw std::runtime_error("Kafka, " + std::string(what) + ": " + rd_kafka_err2str(error));
}

struct DestroyKafka {
  void operator()(rd_kafka_message_t* message) const { rd_kafka_message_destroy(message); }
  void operator()(rd_kafka_topic_partition_list_t* list) const {
    rd_kafka_topic_partition_list_destroy(list);
  }
  void operator()(rd_kafka_queue_t* queue) const { rd_kafka_queue_destroy(queue); }
  void operator()(rd_kafka_event_t* event) const { rd_kafka_event_destroy(event); }
  void operator()(rd_kafka_NewTopic_t* topic) const { rd_kafka_NewTopic_destroy(topic); }
  void operator()(rd_kafka_DeleteTopic_t* topic) const { rd_kafka_DeleteTopic_destroy(topic); }
};
template <typename T>
using KafkaOwner = std::unique_ptr<T, DestroyKafka>;

/// Waits for the result of an administrator's request, and throws if it or one of its topics failed.
void wait_for_topics(rd_kafka_queue_t* queue, const char* what) {
  const KafkaOwner<rd_kafka_event_t> event(rd_kafka_queue_poll(queue, patience_ms));
  if (!event) throw std::runtime_error("Kafka, " + std::string(what) + ": no answer in time");
  check(rd_kafka_event_error(event.get()), what);
  std::size_t count = 0;
  const rd_kafka_topic_result_t** results = nullptr;
  if (const auto* const created = rd_kafka_event_CreateTopics_result(event.get()); created != nullptr) {
    results = rd_kafka_CreateTopics_result_topics(created, &count);
  } else if (const auto* const deleted = rd_kafka_event_DeleteTopics_result(event.get());
             deleted != nullptr) {
    results = rd_kafka_DeleteTopics_result_topics(deleted, &count);
  }
  for (std::size_t i = 0; i < count; ++i) check(rd_kafka_topic_result_error(results[i]), what);
}

KafkaClient::Settings group_settings(const std::string& group) {
  return {{"group.id", group}, {"enable.auto.commit", "false"}, {"auto.offset.reset", "earliest"}};
}

}  // namespace

KafkaClient::KafkaClient(rd_kafka_type_t type, std::uint16_t port, const Settings& settings,
                         OnReport on_report, void* opaque) {
  rd_kafka_conf_t* const configuration = rd_kafka_conf_new();
  char error[error_bytes];
  Settings all = settings;
  all.emplace_back("bootstrap.servers", "127.0.0.1:" + std::to_string(port));
  all.emplace_back("socket.nagle.disable", "true");
  for (const auto& [name, value] : all) {
    if (rd_kafka_conf_set(configuration, name.c_str(), value.c_str(), error, sizeof error) ==
        RD_KAFKA_CONF_OK)
      continue;
    rd_kafka_conf_destroy(configuration);
    throw std::runtime_error("librdkafka: " + std::string(error));
  }
  if (on_report != nullptr) rd_kafka_conf_set_dr_msg_cb(configuration, on_report);
  rd_kafka_conf_set_opaque(configuration, opaque);
  client_.reset(rd_kafka_new(type, configuration, error, sizeof error));
  if (client_) return;
  rd_kafka_conf_destroy(configuration);
  throw std::runtime_error("librdkafka: " + std::string(error));
}

void KafkaAdmin::make_topic(const std::string& topic) {
  char error[error_bytes];
  const KafkaOwner<rd_kafka_NewTopic_t> wanted(
      rd_kafka_NewTopic_new(topic.c_str(), 1, 1, error, sizeof error));
  if (!wanted) throw std::runtime_error("librdkafka: " + std::string(error));
  const KafkaOwner<rd_kafka_queue_t> queue(rd_kafka_queue_new(client_.get()));
  rd_kafka_NewTopic_t* topics[] = {wanted.get()};
  rd_kafka_CreateTopics(client_.get(), topics, 1, nullptr, queue.get());
  wait_for_topics(queue.get(), "making a topic");
}

void KafkaAdmin::delete_topic(const std::string& topic) {
  const KafkaOwner<rd_kafka_DeleteTopic_t> wanted(rd_kafka_DeleteTopic_new(topic.c_str()));
  const KafkaOwner<rd_kafka_queue_t> queue(rd_kafka_queue_new(client_.get()));
  rd_kafka_DeleteTopic_t* topics[] = {wanted.get()};
  rd_kafka_DeleteTopics(client_.get(), topics, 1, nullptr, queue.get());
  wait_for_topics(queue.get(), "deleting a topic");
}

std::uint64_t KafkaAdmin::left(const std::string& topic, const std::string& group) const {
  const KafkaClient member(RD_KAFKA_CONSUMER, port_, group_settings(group));
  std::int64_t first = 0;
  std::int64_t next = 0;
  check(rd_kafka_query_watermark_offsets(member.get(), topic.c_str(), the_partition, &first, &next,
                                         patience_ms),
        "asking for offsets");
  const KafkaOwner<rd_kafka_topic_partition_list_t> list(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), the_partition);
  check(rd_kafka_committed(member.get(), list.get(), patience_ms), "asking for a position");
  const std::int64_t committed = std::max<std::int64_t>(list->elems[0].offset, 0);  // negative: none yet
  return static_cast<std::uint64_t>(std::max<std::int64_t>(next - committed, 0));
}

KafkaProducer::KafkaProducer(std::uint16_t port, std::string topic) : topic_name_(std::move(topic)) {
  client_.emplace(
      RD_KAFKA_PRODUCER, port,
      KafkaClient::Settings{{"enable.idempotence", "true"}, {"acks", "all"}, {"linger.ms", "0.5"}},
      note_report, this);
  topic_ = rd_kafka_topic_new(client_->get(), topic_name_.c_str(), nullptr);
  if (topic_ == nullptr) check(rd_kafka_last_error(), "topic");
}

KafkaProducer::~KafkaProducer() {
  if (topic_ != nullptr) rd_kafka_topic_destroy(topic_);
}

void KafkaProducer::note_report(rd_kafka_t*, const rd_kafka_message_t* message, void* opaque) {
  auto& producer = *static_cast<KafkaProducer*>(opaque);
  if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
    ++producer.confirmed_;
  } else if (producer.refused_.empty()) {
    producer.refused_ = rd_kafka_err2str(message->err);
  }
}

void KafkaProducer::send(ByteView message) {
  const Clock::time_point give_up = Clock::now() + peer_patience;
  while (rd_kafka_produce(topic_, the_partition, RD_KAFKA_MSG_F_COPY, const_cast<std::byte*>(message.data()),
                          message.size(), nullptr, 0, nullptr) != 0) {
    const rd_kafka_resp_err_t error = rd_kafka_last_error();
    if (error != RD_KAFKA_RESP_ERR__QUEUE_FULL || Clock::now() > give_up) check(error, "sending");
    rd_kafka_poll(client_->get(), 1);
  }
  if (++sent_ % messages_per_poll == 0) poll();
}

void KafkaProducer::poll() {
  rd_kafka_poll(client_->get(), 0);
  if (!refused_.empty()) throw std::runtime_error("Kafka refuses a message: " + refused_);
}

void KafkaProducer::flush() {
  check(rd_kafka_flush(client_->get(), patience_ms), "waiting for confirms");
  poll();
}

KafkaConsumer::KafkaConsumer(std::uint16_t port, const std::string& topic, const std::string& group)
    : client_(RD_KAFKA_CONSUMER, port, group_settings(group)) {
  check(rd_kafka_poll_set_consumer(client_.get()), "consuming");
  const KafkaOwner<rd_kafka_topic_partition_list_t> list(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), RD_KAFKA_PARTITION_UA);
  check(rd_kafka_subscribe(client_.get(), list.get()), "subscribing");
}

KafkaConsumer::~KafkaConsumer() {
  rd_kafka_consumer_close(client_.get());
}

std::size_t KafkaConsumer::receive(std::chrono::milliseconds wait, const Take& take) {
  std::size_t count = 0;
  for (; count < messages_per_receive; ++count) {
    const KafkaOwner<rd_kafka_message_t> message(
        rd_kafka_consumer_poll(client_.get(), count == 0 ? static_cast<int>(wait.count()) : 0));
    // A topic that was just made is not known everywhere at once.
    if (!message || message->err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART) break;
    check(message->err, "receiving");
    take({static_cast<const std::byte*>(message->payload), message->len});
  }
  if (count > 0) check(rd_kafka_commit(client_.get(), nullptr, 1), "committing");
  return count;
}

void KafkaConsumer::settle() {
  const rd_kafka_resp_err_t error = rd_kafka_commit(client_.get(), nullptr, 0);
  if (error != RD_KAFKA_RESP_ERR__NO_OFFSET) check(error, "committing");  // otherwise all is committed
}

}  // namespace lightq::bench
