/// A consumer of one topic on a session: batches go out, acknowledgements come in. Layer: session.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <lightq/protocol/session_consuming.hpp>

#include "access/group_scope.hpp"
#include "delivery/session_consumer.hpp"
#include "session/channel.hpp"
#include "session/session_port.hpp"
#include "topic/topic_runtime.hpp"

namespace lightq::broker {

/// Connects a topic's consumer with the session's client. docs/session.md, "Consuming".
/// Stores no messages: the topic keeps track of those that are not acknowledged. Thread: the reactor's.
class ConsumeChannel final : public Channel, public SessionConsumer {
 public:
  /// The calls that a channel makes on its owner, ConsumeSide.
  class Link {
   public:
    virtual ~Link() = default;
    /// Reports that the consumer may begin.
    virtual void channel_opened(ConsumeChannel& channel, const session::ConsumeOpened& answer) = 0;
    /// Reports that the channel had no space to send. The owner calls `go_on` when there is space.
    virtual void room_wanted() = 0;
    /// Reports that a message is longer than the client accepts. The owner ends the channel, but not within
    /// this call.
    virtual void message_too_large(ConsumeChannel& channel) = 0;
  };

  /// Lifetime: topic, port and link outlive the channel.
  ConsumeChannel(TopicRuntime& topic, EndpointRole role, GroupScope scope, SessionPort& port, Link& link,
                 std::uint32_t number)
      : Channel(Kind::consumes, number),
        topic_(&topic),
        role_(role),
        scope_(std::move(scope)),
        port_(port),
        link_(link) {}
  ~ConsumeChannel() override { ConsumeChannel::leave(); }

  /// Opens the consumer. Called once, before anything else. Without a refusal, the link later receives the
  /// channel's opening or its end.
  TopicConsumers::Refusal open(const ConsumeRequest& asked, std::uint64_t user);
  /// Returns the topic, or null after the channel has left it or the topic has ended the channel.
  [[nodiscard]] TopicRuntime* topic() const { return topic_; }
  /// Returns the role that a ticket must permit; scope() is the group or cursor that it must permit.
  [[nodiscard]] EndpointRole role() const { return role_; }
  [[nodiscard]] const GroupScope& scope() const { return scope_; }
  [[nodiscard]] bool is_admitted() const { return admitted_; }
  /// Stops taking messages.
  void retire() { retired_ = true; }
  /// Continues after the session has space again.
  void go_on();

  [[nodiscard]] bool held() const override { return false; }
  [[nodiscard]] bool settled() const override { return true; }
  void leave() override;
  void fetch_ahead_for_input(unsigned step) const override;

  void admitted(const Opened& opened) override;
  [[nodiscard]] bool writable() const override;
  [[nodiscard]] CodecSet codecs() const override { return port_.client_codecs(); }
  void deliver(const DeliveredSlice& delivered) override;
  [[nodiscard]] std::uint32_t refused() const override { return refused_; }
  void flush() override;
  [[nodiscard]] bool hears_late() const override { return port_.client_hears_late(); }
  void late(const std::vector<OffsetRange>& ranges) override;
  void end(ClientError error, const std::string& why) override;

 private:
  TopicRuntime* topic_;
  const EndpointRole role_;
  const GroupScope scope_;
  SessionPort& port_;
  Link& link_;
  bool admitted_ = false;
  bool retired_ = false;
  std::uint32_t refused_ = 0;        // records at the end of the last slice
  mutable bool wants_room_ = false;  // has reported that it is not writable
};

}  // namespace lightq::broker
