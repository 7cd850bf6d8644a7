/// A consumer for requests over HTTP. Other requests settle its messages. Layer: requests.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

#include "delivery/session_consumer.hpp"
#include "requests/copied_bytes.hpp"
#include "requests/requester.hpp"
#include "requests/settling.hpp"
#include "topic/runtime/topic_runtime.hpp"

namespace lightq::broker {

/// The common part of Lease and Stream: a member of a group with messages in flight. MessageDesk owns it; its
/// topic calls it. Thread: the reactor's. Lifetime: the topic ends the consumer before it is destroyed.
class MessageHolder : public SessionConsumer {
 public:
  ~MessageHolder() override;

  /// Settles messages in flight. Errors: invalid_request (a time that is too long).
  Result<Settled> settle(const Settling& settling, std::chrono::steady_clock::time_point now);
  /// Leaves the group, if it is still a member. Its messages in flight are delivered to other consumers.
  void leave();
  /// Returns true if its client still has the right to consume.
  [[nodiscard]] bool is_permitted() const;
  /// Asks for messages again if it was not writable because too many bytes were copied, and there is room
  /// now.
  void wake_if_room();
  [[nodiscard]] std::uint64_t in_flight() const;
  [[nodiscard]] const Requester& requester() const { return requester_; }
  [[nodiscard]] TopicId topic_id() const { return topic_id_; }

  // Implements SessionConsumer.
  [[nodiscard]] CodecSet codecs() const override { return {}; }
  [[nodiscard]] bool hears_late() const override { return true; }
  [[nodiscard]] Life life() const override { return {.joined = joined_}; }
  void late(const std::vector<OffsetRange>& ranges) override;

 protected:
  MessageHolder(TopicRuntime& topic, const AccessTable& access, Requester requester,
                std::shared_ptr<CopiedBytes> copies);

  /// Returns true if messages may be copied. Otherwise `wake_if_room` asks for them later.
  [[nodiscard]] bool may_copy() const;
  /// Returns an object that counts the bytes of copies.
  [[nodiscard]] std::shared_ptr<CopiedBytes::Holding> holding() const {
    return std::make_shared<CopiedBytes::Holding>(copies_);
  }
  /// Opens the consumer in its topic.
  [[nodiscard]] TopicConsumers::Refusal join(const ConsumeRequest& asked);
  /// Returns the topic; null once the consumer has left it.
  [[nodiscard]] TopicRuntime* topic() const { return topic_; }
  /// Called when the topic has ended the consumer.
  void forget_topic() { topic_ = nullptr; }

 private:
  [[nodiscard]] std::vector<OffsetRange> all_in_flight() const;

  TopicRuntime* topic_;  // null at the end
  const AccessTable& access_;
  const Requester requester_;
  const TopicId topic_id_;
  const std::shared_ptr<CopiedBytes> copies_;
  mutable bool wants_room_ = false;  // was not writable because of copies_
  const std::chrono::steady_clock::time_point joined_ = std::chrono::steady_clock::now();
  std::vector<OffsetRange> late_;  // of the present call of settle
};

}  // namespace lightq::broker
