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
#include "session/session_channels.hpp"
#include "session/session_output.hpp"
#include "session/session_tickets.hpp"
#include "topic/runtime/topic_runtime.hpp"

namespace lightq::broker {

/// Connects a topic's consumer with the session's client. docs/session.md, "Consuming".
/// Stores no messages: the topic keeps track of those that are not acknowledged. ChannelBook owns it; the
/// session and its topic call it. Thread: the reactor's.
class ConsumeChannel final : public Channel, public SessionConsumer {
 public:
  /// The wishes of all channels of a session. ConsumeSide owns and fulfils them.
  struct Wanted {
    bool room = false;  ///< a channel had no space to send; `go_on` is called when there is
    std::vector<std::uint32_t> too_large;  ///< channels to end: a message is longer than the client accepts
  };

  /// Lifetime: all outlive the channel.
  ConsumeChannel(TopicRuntime& topic, EndpointRole role, GroupScope scope, SessionChannels& session,
                 const SessionTickets& tickets, Wanted& wanted, std::uint32_t number)
      : Channel(Kind::consumes, number),
        topic_(&topic),
        role_(role),
        scope_(std::move(scope)),
        session_(session),
        output_(session.output()),
        tickets_(tickets),
        wanted_(wanted) {}
  ~ConsumeChannel() override { ConsumeChannel::leave(); }

  /// Opens the consumer. Called once, before anything else. Without a refusal, the channel answers the
  /// client's request later: it begins or ends.
  TopicConsumers::Refusal open(const ConsumeRequest& asked, std::uint64_t user);
  /// Returns the topic, or null after the channel has left it or the topic has ended the channel.
  [[nodiscard]] TopicRuntime* topic() const { return topic_; }
  /// Returns the role that a ticket must permit; scope() is the group or cursor that it must permit.
  [[nodiscard]] EndpointRole role() const { return role_; }
  [[nodiscard]] const GroupScope& scope() const { return scope_; }
  [[nodiscard]] bool is_admitted() const { return admitted_; }
  /// Handles a frame of the client: credit, acknowledge, reject, extend, started or seek.
  void take(const session::FrameHeader& header, ByteView body);
  /// Called when the client has become silent, or is heard again.
  void set_silent(bool silent) {
    if (topic_ != nullptr) topic_->consumers().set_silent(*this, silent);
  }
  /// Returns true if the client has messages in flight that are not overdue.
  [[nodiscard]] bool has_in_flight() const {
    return topic_ != nullptr && TopicConsumers::has_in_flight(*this);
  }
  [[nodiscard]] bool has_leases() const { return has_leases_; }
  /// Stops taking messages, because the client has closed the channel or said goodbye. `leave` follows.
  void close() {
    retired_ = true;
    TopicConsumers::ends_by(*this, MemberEnd::closed);
  }
  /// Continues after the session has space again.
  void go_on();

  [[nodiscard]] bool held() const override { return false; }
  [[nodiscard]] bool settled() const override { return true; }
  void leave() override;
  void fetch_ahead_for_input(unsigned step) const override;

  void admitted(const Opened& opened) override;
  [[nodiscard]] bool writable() const override;
  [[nodiscard]] CodecSet codecs() const override { return output_.client_codecs(); }
  void deliver(const DeliveredSlice& delivered) override;
  [[nodiscard]] std::uint32_t refused() const override { return refused_; }
  void flush() override;
  [[nodiscard]] Life life() const override { return {joined_, session_.life().heard()}; }
  [[nodiscard]] bool hears_late() const override { return output_.client_hears_late(); }
  void late(const std::vector<OffsetRange>& ranges) override;
  void revoked(RevokeCause cause, std::uint32_t before, const std::vector<OffsetRange>& ranges) override;
  void end(ClientError error, const std::string& why) override;

 private:
  void on_credit(const session::FrameHeader& header, ByteView body);
  void on_acknowledge(const session::FrameHeader& header, ByteView body);
  void on_reject(const session::FrameHeader& header, ByteView body);
  void on_extend(const session::FrameHeader& header, ByteView body);
  void on_seek(const session::FrameHeader& header, ByteView body);
  void on_started(const session::FrameHeader& header, ByteView body);
  bool keeps_too_long(std::uint64_t ms);
  bool names_no_hand_out(const session::FrameHeader& header);

  TopicRuntime* topic_;
  const EndpointRole role_;
  const GroupScope scope_;
  SessionChannels& session_;
  SessionOutput& output_;
  const SessionTickets& tickets_;
  Wanted& wanted_;
  const EventLoop::Clock::time_point joined_ = EventLoop::Clock::now();
  bool admitted_ = false;
  bool has_leases_ = false;
  bool has_dead_letters_ = false;  // the client may reject messages as dead
  bool retired_ = false;
  std::uint32_t refused_ = 0;        // records at the end of the last slice
  mutable bool wants_room_ = false;  // has reported that it is not writable
};

}  // namespace lightq::broker
