/// The connection of one plain consumer, of any protocol. It tracks which messages were delivered to it and
/// which are unsent. Layer: plain.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "delivery/record_sink.hpp"
#include "zmtp/zmtp_connection.hpp"

namespace lightq::broker {

class PlainConsumerConnection;

/// The functions of the topic that an outlet calls. Thread: the reactor's.
class PlainConsumerHost {
 public:
  virtual ~PlainConsumerHost() = default;
  /// Called when the consumer begins to want messages.
  virtual void consumer_ready(PlainConsumerConnection& outlet) = 0;
  /// Called when the consumer wants no messages any more, but stays connected.
  virtual void consumer_unready(PlainConsumerConnection& outlet) = 0;
  /// Called when the consumer's buffer has space again.
  virtual void consumer_writable() = 0;
};

/// A consumer's connection as the delivery layer sees it. It keeps at most one buffer (64 KiB) and one
/// message that the operating system has not taken. A message is unsent until the operating system has taken
/// every byte of it. Thread: the reactor's.
///
/// Example: messages 7 and 8 were taken, and their last bytes are at 100 and 200 of the output. After 150
/// bytes were sent, message 8 is unsent.
class PlainConsumerConnection : public ZmtpConnection, public RecordSink {
 public:
  PlainConsumerConnection(EventLoop& loop, UniqueFd descriptor, Owner& owner, std::vector<std::byte>& scratch,
                          PlainConsumerHost& host)
      : ZmtpConnection(loop, std::move(descriptor), owner, scratch), host_(host) {}

  /// Makes the connection take no more messages. Messages that it has taken are still sent.
  void retire() { retired_ = true; }
  /// Returns the number of messages that this connection has taken, unsent ones included.
  [[nodiscard]] std::uint64_t handed() const { return handed_; }
  /// Returns true if the connection is open and its consumer wants messages.
  [[nodiscard]] bool ready() const { return ready_; }
  /// Returns true if the operating system has taken all output.
  [[nodiscard]] bool all_sent() const { return output().buffered() == 0; }

  bool offer(Offset offset, ByteView payload) override;
  void flush() override;
  [[nodiscard]] std::optional<Offset> first_unsent() const override;
  [[nodiscard]] std::vector<Offset> unsent() const override;
  [[nodiscard]] std::size_t unsent_messages() const override {
    forget_sent();
    return taken_.size() - taken_head_;
  }
  void forget_unsent() override { taken_head_ = taken_.size(); }

 protected:
  /// Appends the message to the output, in the form in which the consumer receives it.
  virtual void encode(ByteView payload) = 0;
  /// Sets whether the consumer wants messages, and tells the host of a change.
  void set_ready(bool ready);
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

  PlainConsumerHost& host_;
  bool ready_ = false;
  bool retired_ = false;
  std::uint64_t handed_ = 0;
  mutable std::vector<Taken> taken_;  // from taken_head_ on: messages that may be unsent, oldest first
  mutable std::size_t taken_head_ = 0;
  mutable bool ascending_ = true;  // false: a redelivery made the offsets of taken_ descend somewhere
};

}  // namespace lightq::broker
