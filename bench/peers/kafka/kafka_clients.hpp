/// A producer, a consumer and an administrator of Kafka, over librdkafka. Layer: bench peers.
#pragma once

#include <librdkafka/rdkafka.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "peers/peer.hpp"

namespace lightq::bench {

/// Owns a client of either type. Throws std::runtime_error for settings that it does not know.
class KafkaClient {
 public:
  using Settings = std::vector<std::pair<std::string, std::string>>;
  using OnReport = void (*)(rd_kafka_t*, const rd_kafka_message_t*, void*);

  /// `on_report`: called with `opaque` for each message of a producer; null: none.
  KafkaClient(rd_kafka_type_t type, std::uint16_t port, const Settings& settings,
              OnReport on_report = nullptr, void* opaque = nullptr);
  [[nodiscard]] rd_kafka_t* get() const { return client_.get(); }

 private:
  struct Destroy {
    void operator()(rd_kafka_t* client) const { rd_kafka_destroy(client); }
  };
  std::unique_ptr<rd_kafka_t, Destroy> client_;
};

/// Topics of one partition, and groups' positions.
class KafkaAdmin {
 public:
  explicit KafkaAdmin(std::uint16_t port) : port_(port), client_(RD_KAFKA_PRODUCER, port, {}) {}
  void make_topic(const std::string& topic);
  void delete_topic(const std::string& topic);
  /// Returns how many messages the group has not committed.
  [[nodiscard]] std::uint64_t left(const std::string& topic, const std::string& group) const;

 private:
  std::uint16_t port_;
  KafkaClient client_;
};

/// Sends asynchronously with an idempotent producer.
class KafkaProducer : public PeerProducer {
 public:
  KafkaProducer(std::uint16_t port, std::string topic);
  ~KafkaProducer() override;
  void send(ByteView message) override;
  void poll() override;
  void flush() override;
  [[nodiscard]] std::uint64_t confirmed() const override { return confirmed_; }

 private:
  static void note_report(rd_kafka_t* client, const rd_kafka_message_t* message, void* opaque);
  std::string topic_name_;
  std::optional<KafkaClient> client_;
  rd_kafka_topic_t* topic_ = nullptr;
  std::uint64_t sent_ = 0;
  std::uint64_t confirmed_ = 0;
  std::string refused_;  // the first error of a message
};

/// A member of a group. Commits its position after each call of `receive`.
class KafkaConsumer : public PeerConsumer {
 public:
  KafkaConsumer(std::uint16_t port, const std::string& topic, const std::string& group);
  ~KafkaConsumer() override;
  std::size_t receive(std::chrono::milliseconds wait, const Take& take) override;
  void settle() override;

 private:
  KafkaClient client_;
};

}  // namespace lightq::bench
