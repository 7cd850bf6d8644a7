/// A producer and a consumer of RabbitMQ. Layer: bench peers.
#pragma once

#include <set>

#include "peers/rabbitmq/rabbitmq_connection.hpp"

namespace lightq::bench {

/// Publishes with publisher confirms.
class RabbitProducer : public PeerProducer {
 public:
  /// `exchange` empty: messages go to the queue `key`.
  RabbitProducer(std::uint16_t port, std::string exchange, std::string key, bool persistent);
  void send(ByteView message) override;
  void poll() override;
  void flush() override;
  [[nodiscard]] std::uint64_t confirmed() const override { return confirmed_; }

 private:
  /// Returns false if no frame came in time.
  bool read_confirm(std::chrono::milliseconds wait);
  void confirm(std::uint64_t tag, bool multiple);
  RabbitConnection connection_;
  std::string exchange_;
  std::string key_;
  amqp_basic_properties_t properties_{};
  std::uint64_t sent_ = 0;         // also the tag of the last message
  std::uint64_t confirmed_ = 0;    // all messages up to this tag
  std::set<std::uint64_t> early_;  // confirmed tags above it
};

/// Consumes with acknowledgements, each of which covers all before it, or of single messages.
class RabbitConsumer : public PeerConsumer {
 public:
  /// `from_first`: of a stream, begin at its first message.
  RabbitConsumer(std::uint16_t port, const std::string& queue, bool single, bool from_first);
  std::size_t receive(std::chrono::milliseconds wait, const Take& take) override;
  void settle() override { connection_.close_channel(); }

 private:
  RabbitConnection connection_;
  bool single_;
};

}  // namespace lightq::bench
