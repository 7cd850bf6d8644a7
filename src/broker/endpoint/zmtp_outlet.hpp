/// A consumer's ZeroMQ socket: its PULL socket (PullOutlet) or its SUB socket (SubOutlet). Layer: endpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "broker/endpoint/outlet_connection.hpp"

namespace lightq::broker {

/// Each message is one frame, or ends in one. The reactor's thread.
class ZmtpOutlet : public OutletConnection {
 public:
  using OutletConnection::OutletConnection;

 protected:
  /// A message part from the consumer, which only subscribers send.
  virtual void on_message(ByteView payload) = 0;
  /// Several such may have come.
  virtual void after_input() {}
  std::size_t consume(std::span<std::byte> bytes) override;
};

class PullOutlet final : public ZmtpOutlet {
 public:
  using ZmtpOutlet::ZmtpOutlet;

 protected:
  [[nodiscard]] std::optional<ZmtpHandshake> make_handshake() const override {
    return ZmtpHandshake("PUSH", {"PULL"});
  }
  void on_open() override { set_ready(true); }
  void encode(ByteView payload) override;
  void on_message(ByteView) override { fail("a message on a socket that only receives"); }
};

/// Sends two frames a message, the topic's name and the payload, while the peer subscribes to a prefix of the
/// name.
class SubOutlet final : public ZmtpOutlet {
 public:
  SubOutlet(EventLoop& loop, UniqueFd descriptor, Owner& owner, std::vector<std::byte>& scratch,
            OutletHost& host, const TopicName& topic);

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
  // Subscriptions by the length of their prefix of the topic's name. Each SUBSCRIBE counts, and takes a
  // CANCEL of its own (RFC 37).
  std::map<std::size_t, std::uint64_t> subscriptions_;
};

}  // namespace lightq::broker
