/// One consumer's connection: its PULL socket (PullOutlet) or its SUB socket (SubOutlet). Layer: endpoint.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "broker/delivery/outlet.hpp"
#include "broker/endpoint/connection.hpp"

namespace lightq::broker {

class OutletConnection;

/// What an outlet needs of its topic's host. The reactor's thread.
class OutletHost {
 public:
  virtual ~OutletHost() = default;
  /// The consumer wants messages from now on; it wants none any more, but stays.
  virtual void consumer_ready(OutletConnection& outlet) = 0;
  virtual void consumer_unready(OutletConnection& outlet) = 0;
  /// There is room again.
  virtual void consumer_writable() = 0;
};

/// Keeps at most one buffer and one message that the operating system has not taken. The reactor's thread.
class OutletConnection : public Connection, public Outlet {
 public:
  OutletConnection(EventLoop& loop, UniqueFd descriptor, Owner& owner, std::vector<std::byte>& scratch,
                   OutletHost& host)
      : Connection(loop, std::move(descriptor), owner, scratch), host_(host) {}

  /// Takes nothing more; what it has is still sent.
  void retire() { retired_ = true; }
  /// Messages handed to this consumer and, as far as known, sent.
  [[nodiscard]] std::uint64_t handed() const { return handed_; }
  /// Wants messages and is open.
  [[nodiscard]] bool ready() const { return ready_; }
  [[nodiscard]] bool all_sent() const { return output().buffered() == 0; }

  bool offer(Offset offset, ByteView payload) override;
  void flush() override;
  [[nodiscard]] std::optional<Offset> first_unsent() const override;
  [[nodiscard]] std::vector<Offset> unsent() const override;

 protected:
  virtual void encode(ByteView payload) = 0;
  /// A message part from the consumer, which only subscribers send.
  virtual void on_message(ByteView payload) = 0;
  void set_ready(bool ready);
  std::size_t consume(ByteView bytes) override;
  void on_writable() override {
    forget_sent();
    host_.consumer_writable();
  }

 private:
  struct Taken {
    Offset offset;
    std::uint64_t end = 0;  // position in the output where its last byte lies
  };
  void forget_sent() const;

  OutletHost& host_;
  bool ready_ = false;
  bool retired_ = false;
  std::uint64_t handed_ = 0;
  mutable std::vector<Taken> taken_;  // what may be unsent, oldest first, from taken_head_ on
  mutable std::size_t taken_head_ = 0;
};

class PullOutlet final : public OutletConnection {
 public:
  using OutletConnection::OutletConnection;

 protected:
  [[nodiscard]] std::string_view our_type() const override { return "PUSH"; }
  [[nodiscard]] bool accepts_peer(std::string_view peer_type) const override { return peer_type == "PULL"; }
  void on_open() override { set_ready(true); }
  void encode(ByteView payload) override;
  void on_message(ByteView) override { fail("a message on a socket that only receives"); }
};

/// Sends two frames a message, the topic's name and the payload, while the peer subscribes to a prefix of the
/// name.
class SubOutlet final : public OutletConnection {
 public:
  SubOutlet(EventLoop& loop, UniqueFd descriptor, Owner& owner, std::vector<std::byte>& scratch,
            OutletHost& host, const TopicName& topic);

 protected:
  [[nodiscard]] std::string_view our_type() const override { return "XPUB"; }
  [[nodiscard]] bool accepts_peer(std::string_view peer_type) const override {
    return peer_type == "SUB" || peer_type == "XSUB";
  }
  void on_open() override {}
  void encode(ByteView payload) override;
  void on_message(ByteView payload) override;
  void on_command(const zmtp::Command& command) override;

 private:
  void change(const zmtp::SubscriptionChange& change);

  const std::string topic_;
  std::vector<std::byte> topic_frame_;
  std::set<std::string, std::less<>> prefixes_;  // subscribed prefixes of the topic's name: a bounded number
};

}  // namespace lightq::broker
