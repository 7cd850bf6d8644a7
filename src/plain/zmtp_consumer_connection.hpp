/// The connections of consumers over ZeroMQ: with a PULL socket (PullConsumerConnection) or a SUB socket
/// (SubConsumerConnection). Layer: plain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "plain/plain_consumer_connection.hpp"

namespace lightq::broker {

/// A consumer's connection over ZeroMQ. The payload of each message is one frame, the message's last or only
/// one. Thread: the reactor's.
class ZmtpConsumerConnection : public PlainConsumerConnection {
 public:
  using PlainConsumerConnection::PlainConsumerConnection;

 protected:
  /// Called with each message part from the consumer. Only subscribers send any.
  virtual void on_message(ByteView payload) = 0;
  /// Called after input was processed, which may have been several message parts and commands.
  virtual void after_input() {}
  std::size_t consume(std::span<std::byte> bytes) override;
};

/// A consumer with a PULL socket. Sends each message as one frame.
class PullConsumerConnection final : public ZmtpConsumerConnection {
 public:
  using ZmtpConsumerConnection::ZmtpConsumerConnection;

 protected:
  [[nodiscard]] std::optional<ZmtpHandshake> make_handshake() const override {
    return ZmtpHandshake("PUSH", {"PULL"});
  }
  void on_open() override { set_ready(true); }
  void encode(ByteView payload) override;
  void on_message(ByteView) override {
    life().fail("a message from a plain consumer, which may only receive");
  }
};

/// A consumer with a SUB or XSUB socket. Sends two frames per message, the topic's name and the payload,
/// while the peer subscribes to a prefix of the name.
class SubConsumerConnection final : public ZmtpConsumerConnection {
 public:
  SubConsumerConnection(EventLoop& loop, UniqueFd descriptor, Owner& owner, std::vector<std::byte>& scratch,
                        PlainConsumerHost& host, const TopicName& topic);

 protected:
  [[nodiscard]] std::optional<ZmtpHandshake> make_handshake() const override {
    return ZmtpHandshake("XPUB", {"SUB", "XSUB"});
  }
  void on_open() override {}
  void encode(ByteView payload) override;
  void on_message(ByteView payload) override;
  void on_command(const zmtp::Command& command) override;
  void after_input() override;

 private:
  void change(const zmtp::SubscriptionChange& change);

  const std::string topic_;
  std::vector<std::byte> topic_frame_;
  // The number of subscriptions, by the length of their prefix of the topic's name. Each SUBSCRIBE counts,
  // and needs a CANCEL of its own (RFC 37).
  std::map<std::size_t, std::uint64_t> subscriptions_;
};

}  // namespace lightq::broker
