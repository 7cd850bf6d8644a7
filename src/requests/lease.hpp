/// Messages that one request has received, until they are settled. Layer: requests.
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

/// The wishes of a request for messages.
struct LeaseWish {
  std::string group;  ///< empty: the default group
  StartPosition start;
  std::uint64_t messages_max = 1;
  std::uint64_t bytes_max = 1;        ///< more only if it is one message
  std::chrono::milliseconds lasts{};  ///< the time to acknowledge the messages
  std::chrono::milliseconds wait{};   ///< for the first message
  bool is_acknowledged = false;       ///< messages count as acknowledged when they are sent
};

/// The messages of a lease.
struct Leased {
  std::uint64_t lease = 0;  ///< 0: none is kept, because no message is in flight
  std::uint64_t incarnation = 0;
  std::uint64_t lost = 0;  ///< messages that were lost before these
  std::vector<ReceivedMessage> messages;
  std::shared_ptr<CopiedBytes::Holding> held;  ///< keep it as long as the messages, or texts made of them
};

/// A consumer of a group for one request: it takes messages once, and is a member of the group until all of
/// them are settled or taken back. So each request has its own time to acknowledge, and a request that is
/// settled late acts on no later delivery. MessageDesk owns it; its topic calls it. Thread: the reactor's.
class Lease final : public MessageHolder {
 public:
  /// Called once, with the messages or, after the time to wait, with none.
  using Done = std::function<void(Result<Leased>)>;
  struct Parts {
    TopicRuntime& topic;
    const AccessTable& access;
    Requester requester;
    std::uint64_t id = 0;
    std::shared_ptr<CopiedBytes> copies;
    std::function<void()> changed;  ///< called when it was admitted or answered, and at its end
  };

  /// Lifetime: the topic ends the lease before it is destroyed.
  Lease(Parts parts, LeaseWish wish, Done done);

  /// Joins the group. May answer with an error.
  [[nodiscard]] TopicConsumers::Refusal begin();
  /// Returns true if its group is ready: now it waits for messages.
  [[nodiscard]] bool is_admitted() const { return is_admitted_; }
  /// Answers with no messages, if it still waits; with an error if its group is not ready.
  void give_up();
  /// Takes all messages back: the client has not received them.
  void take_back();
  /// Ends the lease if its client has lost the right to consume: answers with an error if it waits, and takes
  /// all messages back.
  void look_at_rights();

  [[nodiscard]] bool is_waiting() const { return static_cast<bool>(done_); }
  /// Returns true if it waits, or has messages in flight.
  [[nodiscard]] bool is_needed() const;
  /// Returns when to ask again whether it is needed: a moment after the first of its messages is taken back.
  /// Requires: is_needed(), and not is_waiting().
  [[nodiscard]] std::chrono::steady_clock::time_point check_at(
      std::chrono::steady_clock::time_point now) const;
  [[nodiscard]] const LeaseWish& wish() const { return wish_; }

  // Implements SessionConsumer.
  void admitted(const Opened& /*opened*/) override;
  [[nodiscard]] bool writable() const override;
  void deliver(const DeliveredSlice& delivered) override;
  [[nodiscard]] std::uint32_t refused() const override { return refused_; }
  void flush() override;
  void end(ClientError code, const std::string& why) override;

 private:
  void answer(Result<Leased> result);

  const std::uint64_t id_;
  const std::function<void()> changed_;
  const LeaseWish wish_;
  Done done_;  // until it is answered
  Leased taken_;
  bool is_admitted_ = false;
  std::uint32_t refused_ = 0;
};

}  // namespace lightq::broker
