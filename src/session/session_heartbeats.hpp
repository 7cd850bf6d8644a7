/// The signs of life of a session's two sides. Layer: session.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "net/connection_transport.hpp"
#include "net/event_loop.hpp"
#include "session/session_life.hpp"
#include "session/session_output.hpp"

namespace lightq::broker {

/// Ends a session without a sign of life of its client for twice the heartbeat interval, and sends heartbeats
/// to the client. A whole frame is a sign of life, and so is a number of bytes of an incomplete one. A client
/// that is busy with messages becomes *quiet* instead: nothing is delivered to it until it is heard again.
/// A quiet client that knows leases keeps its session, even if others receive what it has not started.
/// Time in which the broker itself does not read does not end a session. But a client with leases becomes
/// quiet then, too, because others may need the messages that it has not started. SessionConnection owns and
/// calls it. Thread: the reactor's.
class SessionHeartbeats {
 public:
  /// The questions to the consumers of the session, and a message to them.
  struct Consumers {
    /// Returns true if the client has messages in flight that are not overdue.
    std::function<bool()> have_in_flight;
    /// Returns true if a consumer of the client has leases.
    std::function<bool()> have_leases;
    /// Called when the client becomes quiet (true) and when it is heard again (false).
    std::function<void(bool)> set_silent;
  };

  /// Lifetime: all outlive it.
  SessionHeartbeats(EventLoop& loop, const ConnectionTransport& transport, SessionLife& life,
                    SessionOutput& output, Consumers consumers)
      : loop_(loop), transport_(transport), life_(life), output_(output), consumers_(std::move(consumers)) {}
  SessionHeartbeats(const SessionHeartbeats&) = delete;
  SessionHeartbeats& operator=(const SessionHeartbeats&) = delete;
  ~SessionHeartbeats();

  /// Begins when the client has greeted. Zero: no sign of life is needed from that side.
  void begin(std::uint32_t broker_ms, std::uint32_t client_ms);
  /// Called when the client's silence begins to count: at the opening, and when the broker reads again.
  void count_from_now() { heard_ = EventLoop::Clock::now(); }
  /// Notes that a whole frame was received. `hear` makes it a sign of life.
  void note_frame() { frame_taken_ = true; }
  /// Called after `bytes` bytes of the client were processed.
  void hear(std::size_t bytes);

 private:
  void arm_silence_timer();
  void check_silence(std::chrono::milliseconds allowed);
  [[nodiscard]] bool is_busy() const;
  void become_quiet();
  void arm_heartbeat_timer();
  void send_heartbeat();

  EventLoop& loop_;
  const ConnectionTransport& transport_;
  SessionLife& life_;
  SessionOutput& output_;
  const Consumers consumers_;
  std::uint32_t broker_ms_ = 0;
  std::uint32_t client_ms_ = 0;
  EventLoop::Clock::time_point heard_;  // or a later time until which silence does not count
  bool frame_taken_ = false;            // since the last check
  bool is_quiet_ = false;  // considered busy: the broker sends nothing more until the client sends something
  std::size_t unheard_bytes_ = 0;  // of an incomplete frame, received since heard_
  std::uint64_t sent_seen_ = 0;    // the output's total at the silence timer's last check
  std::uint64_t said_seen_ = 0;    // of said frames, at the heartbeat timer's last check
  EventLoop::TimerId silence_timer_ = 0;
  EventLoop::TimerId heartbeat_timer_ = 0;
};

}  // namespace lightq::broker
