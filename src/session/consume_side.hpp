/// The consuming half of a session. Layer: session.
#pragma once

#include <cstdint>
#include <string>

#include "access/group_scope.hpp"
#include "net/turn_queue.hpp"
#include "session/consume_channel.hpp"
#include "session/read_queue.hpp"
#include "session/session_channels.hpp"
#include "session/session_tickets.hpp"

namespace lightq::broker {

/// Opens the channels of consumers, and handles reads. docs/session.md, "Consuming".
/// SessionConnection owns it and calls it. The channels are in ChannelBook, the reads here. Thread: the
/// reactor's.
class ConsumeSide final : private ReadQueue::Host {
 public:
  /// `turns`: the queue in which `waiter`, the session, waits for its turn to do expensive work; null: it
  /// never waits. Lifetime: all outlive it.
  ConsumeSide(SessionChannels& session, SessionTickets& tickets, const ReadLimits& read_limits,
              TurnQueue* turns, TurnQueue::Waiter& waiter)
      : session_(session),
        tickets_(tickets),
        turns_(turns),
        waiter_(waiter),
        reads_(session.output(), *this, read_limits) {}
  ConsumeSide(const ConsumeSide&) = delete;
  ConsumeSide& operator=(const ConsumeSide&) = delete;

  void on_open(const session::FrameHeader& header, ByteView body);
  void on_read(const session::FrameHeader& header, ByteView body);

  /// Returns true if a channel or a read waits for space to send.
  [[nodiscard]] bool wants_room() const { return wanted_.room || reads_.wants_room(); }
  /// Continues the channels and reads that waited for space.
  void go_on();
  /// Stops delivery on a channel that its client is closing.
  void close(std::uint32_t number);
  /// Returns true if `has` returns true for one of the channels.
  [[nodiscard]] bool any(bool (ConsumeChannel::*has)() const) const;
  /// Called when the client has become silent, or is heard again.
  void set_silent(bool silent);
  /// Leaves all topics, because the client said goodbye. Its unacknowledged messages go to other consumers.
  void leave();
  /// Called when the session ends because the broker stops.
  void broker_stops();
  /// Ends channels and reads of topics that the session may no longer consume.
  void end_unpermitted();
  /// Returns true if all reads are answered.
  [[nodiscard]] bool settled() const { return reads_.is_empty(); }
  void drop_reads() { reads_.drop_all(); }

 private:
  // ReadQueue::Host
  [[nodiscard]] TopicRuntime* permitted(const std::string& topic, EndpointRole role,
                                        const GroupScope& scope) const override {
    return tickets_.permitted(topic, role, scope);
  }
  [[nodiscard]] TopicRuntime* find_topic(TopicId topic) const override { return tickets_.find_topic(topic); }
  bool has_turn() override;
  void spend(std::uint64_t bytes) override;
  void work_soon() override { session_.life().work_soon(); }

  void end_too_large();
  [[nodiscard]] ConsumeChannel* find(std::uint32_t number) const;

  SessionChannels& session_;
  SessionTickets& tickets_;
  TurnQueue* const turns_;
  TurnQueue::Waiter& waiter_;
  ReadQueue reads_;
  ConsumeChannel::Wanted wanted_;
};

}  // namespace lightq::broker
