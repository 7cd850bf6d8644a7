/// A consumer that sends messages to one client until it ends. Layer: requests.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

#include "delivery/state/consume_request.hpp"
#include "requests/copied_bytes.hpp"
#include "requests/message_holder.hpp"
#include "requests/received_message.hpp"

namespace lightq::broker {

/// The wishes of a client that opens a stream.
struct StreamWish {
  std::string group;  ///< empty: none; the stream then has a cursor of its own, which ends with it
  StartPosition start;
  std::uint64_t messages_max = 1;     ///< that are in flight, or not sent yet
  std::uint64_t bytes_max = 1;        ///< of messages that are not sent yet; more only by one message
  std::chrono::milliseconds lasts{};  ///< the time to acknowledge a message
  bool is_acknowledged = false;       ///< messages count as acknowledged when they are sent
};

/// The state in which a stream begins.
struct StreamOpened {
  std::uint64_t stream = 0;  ///< its number, for MessageDesk
  std::uint64_t lease = 0;   ///< that settles its messages; 0: they need not be settled
  Offset next;               ///< the first offset that it may send
};

/// Messages, and their bytes as the credit counts them.
struct StreamAmount {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;

  StreamAmount& operator+=(const StreamAmount& more) {
    messages += more.messages;
    bytes += more.bytes;
    return *this;
  }
};

/// Messages that a stream sends together.
struct StreamedMessages {
  std::uint64_t lost = 0;  ///< messages that were lost before these
  StreamAmount amount;     ///< of these
  std::vector<ReceivedMessage> messages;
  std::shared_ptr<CopiedBytes::Holding> held;  ///< keep it as long as the messages, or texts made of them
};

/// The client of a stream. Thread: the reactor's.
class StreamClient {
 public:
  StreamClient() = default;
  StreamClient(const StreamClient&) = delete;
  StreamClient& operator=(const StreamClient&) = delete;
  virtual ~StreamClient() = default;

  /// Called once, when the stream begins. Messages follow.
  virtual void opened(const StreamOpened& opened) = 0;
  virtual void sent(StreamedMessages messages) = 0;
  /// Called once, when the broker ends the stream or refuses it. Nothing follows.
  virtual void ended(const Error& why) = 0;
};

/// A consumer for one response that does not end: a member of a group, or a consumer with its own cursor. Its
/// credit bounds the messages that the client has not taken, so a slow client costs a bounded amount of
/// memory. MessageDesk owns it; its topic calls it. Thread: the reactor's.
class Stream final : public MessageHolder {
 public:
  struct Parts {
    TopicRuntime& topic;
    const AccessTable& access;
    Requester requester;
    std::uint64_t id = 0;
    std::shared_ptr<StreamClient> client;
    std::shared_ptr<CopiedBytes> copies;
    std::function<void()> over;  ///< called when the stream has ended; it must not be destroyed in that call
  };

  /// Lifetime: the topic ends the stream before it is destroyed.
  Stream(Parts parts, StreamWish wish);

  /// Joins the group.
  [[nodiscard]] TopicConsumers::Refusal begin();
  /// Called when the system has taken these messages.
  void written(const StreamAmount& taken);
  /// Gives credit for messages that were settled or taken back.
  void give_credit();
  /// Ends the stream if its client has lost the right to consume.
  void look_at_rights();
  /// Ends the stream, unless its group is ready.
  void give_up();

  // Implements SessionConsumer.
  void admitted(const Opened& opened) override;
  [[nodiscard]] bool writable() const override;
  void deliver(const DeliveredSlice& delivered) override;
  [[nodiscard]] std::uint32_t refused() const override { return refused_; }
  void flush() override;
  void end(ClientError code, const std::string& why) override;

 private:
  void end_with(const Error& why);
  [[nodiscard]] bool is_leased() const { return !wish_.is_acknowledged && !wish_.group.empty(); }

  const std::uint64_t id_;
  std::shared_ptr<StreamClient> client_;  // null once it is told the end
  const std::function<void()> over_;
  const StreamWish wish_;
  StreamedMessages taken_;
  bool is_admitted_ = false;
  std::uint32_t refused_ = 0;
  // Sums since the beginning.
  StreamAmount granted_;
  StreamAmount delivered_;
  StreamAmount written_;
};

}  // namespace lightq::broker
