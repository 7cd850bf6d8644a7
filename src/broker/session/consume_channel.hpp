/// One consumer of one topic on a session: batches out, acknowledgements in. Layer: session.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <lightq/protocol/session_consuming.hpp>

#include "broker/delivery/session_consumer.hpp"
#include "broker/endpoint/group_scope.hpp"
#include "broker/endpoint/hosted_topic.hpp"
#include "broker/session/channel.hpp"
#include "broker/session/session_port.hpp"

namespace lightq::broker {

/// docs/session.md, "Consuming". The reactor's thread. Keeps no message: what is not acknowledged, the topic
/// knows.
class ConsumeChannel final : public Channel, public SessionConsumer {
 public:
  /// What a channel needs of whoever keeps it.
  class Link {
   public:
    virtual ~Link() = default;
    /// The consumer may begin.
    virtual void channel_opened(ConsumeChannel& channel, const session::ConsumeOpened& answer) = 0;
    /// It had to say that there is no room: go_on is to be called when there is some.
    virtual void room_wanted() = 0;
    /// A message is longer than the client takes: it is to be ended, not within the call.
    virtual void message_too_large(ConsumeChannel& channel) = 0;
  };

  /// All outlive it.
  ConsumeChannel(HostedTopic& topic, EndpointRole role, GroupScope scope, SessionPort& port, Link& link,
                 std::uint32_t number)
      : Channel(Kind::consumes, number),
        topic_(&topic),
        role_(role),
        scope_(std::move(scope)),
        port_(port),
        link_(link) {}
  ~ConsumeChannel() override { ConsumeChannel::leave(); }

  /// Once, before anything else. Without a refusal the link is told later, of the channel's opening or of its
  /// end.
  TopicConsumers::Refusal open(const session::ConsumeOpen& asked, std::uint64_t user);
  /// Null once it has left, or the topic has ended it.
  [[nodiscard]] HostedTopic* topic() const { return topic_; }
  /// What a ticket has to permit, and of which group or cursor.
  [[nodiscard]] EndpointRole role() const { return role_; }
  [[nodiscard]] const GroupScope& scope() const { return scope_; }
  [[nodiscard]] bool is_admitted() const { return admitted_; }
  /// Takes nothing more.
  void retire() { retired_ = true; }
  /// There is room again.
  void go_on();

  [[nodiscard]] bool held() const override { return false; }
  [[nodiscard]] bool settled() const override { return true; }
  void leave() override;
  void fetch_ahead_for_input(unsigned step) const override;

  void admitted(const Opened& opened) override;
  [[nodiscard]] bool writable() const override;
  [[nodiscard]] CodecSet codecs() const override { return port_.client_codecs(); }
  void deliver(const HandedSlice& handed) override;
  [[nodiscard]] std::uint32_t refused() const override { return refused_; }
  void flush() override;
  [[nodiscard]] bool hears_late() const override { return port_.client_hears_late(); }
  void late(const std::vector<OffsetRange>& ranges) override;
  void end(session::Code code, const std::string& why) override;

 private:
  HostedTopic* topic_;
  const EndpointRole role_;
  const GroupScope scope_;
  SessionPort& port_;
  Link& link_;
  bool admitted_ = false;
  bool retired_ = false;
  std::uint32_t refused_ = 0;        // of the slice that was delivered last
  mutable bool wants_room_ = false;  // has said that it is not writable
};

}  // namespace lightq::broker
