/// Times the silence of a session's client, and heartbeats to it. Layer: session.
#include "session/session_heartbeats.hpp"

#include <algorithm>
#include <utility>

#include <lightq/protocol/session_link.hpp>

namespace lightq::broker {

SessionHeartbeats::~SessionHeartbeats() {
  loop_.cancel(silence_timer_);
  loop_.cancel(heartbeat_timer_);
}

void SessionHeartbeats::begin(std::uint32_t broker_ms, std::uint32_t client_ms) {
  broker_ms_ = broker_ms;
  life_.hear(EventLoop::Clock::now());
  client_ms_ = client_ms;
  arm_silence_timer();
  arm_heartbeat_timer();
}

/// The number of bytes that counts exceeds the heartbeats that a damaged length could take for a frame's
/// body.
void SessionHeartbeats::hear(std::size_t bytes) {
  unheard_bytes_ += bytes;
  if (!std::exchange(frame_taken_, false) && unheard_bytes_ < session::heard_bytes_least) return;
  unheard_bytes_ = 0;
  heard_ = EventLoop::Clock::now();
  life_.hear(heard_);
  if (!std::exchange(is_quiet_, false)) return;
  output_.set_quiet(false);
  consumers_.set_silent(false);
  life_.work_soon();
}

void SessionHeartbeats::arm_silence_timer() {
  if (broker_ms_ == 0) return;
  const auto allowed = std::chrono::milliseconds(2ULL * broker_ms_);
  // A client that said goodbye is not read. Output that it still accepts is a sign of life.
  const std::uint64_t sent = output_.sent_total();
  if (transport_.is_paused() && (!life_.is_leaving() || sent != sent_seen_)) count_from_now();
  sent_seen_ = sent;
  // While not reading, the broker does not see the connection's end. If the peer's process is gone, sending
  // makes the system report it.
  if (transport_.is_paused() && transport_.peer_gone()) send_heartbeat();
  const auto from = is_quiet_ ? EventLoop::Clock::now() : heard_;
  silence_timer_ = loop_.at(from + allowed, [this, allowed] { check_silence(allowed); });
}

void SessionHeartbeats::check_silence(std::chrono::milliseconds allowed) {
  if (life_.is_ending()) return;
  const bool may_be_heard =
      !transport_.is_paused() || (life_.is_leaving() && output_.sent_total() == sent_seen_);
  if (may_be_heard && EventLoop::Clock::now() - heard_ >= allowed) {
    if (!is_busy()) return life_.ask_end(session::Code::idle, "received nothing for twice the heartbeat");
    become_quiet();
  } else if (transport_.is_paused() && !life_.is_leaving() &&
             EventLoop::Clock::now() - life_.heard() >= allowed && consumers_.have_leases()) {
    become_quiet();
  }
  arm_silence_timer();
}

void SessionHeartbeats::become_quiet() {
  if (std::exchange(is_quiet_, true)) return;
  output_.set_quiet(true);
  consumers_.set_silent(true);
}

/// Returns true if the client's silence may mean that it processes messages in flight. The system must still
/// have a working connection to it. With leases it stays busy when the messages go to others meanwhile.
bool SessionHeartbeats::is_busy() const {
  if (!output_.client_may_be_busy() || life_.is_leaving()) return false;
  const bool was_busy = is_quiet_ && consumers_.have_leases();
  return (was_busy || consumers_.have_in_flight()) && !transport_.is_peer_lost();
}

void SessionHeartbeats::arm_heartbeat_timer() {
  if (client_ms_ == 0) return;
  const auto half = std::chrono::milliseconds(std::max(client_ms_ / 2, 1U));
  heartbeat_timer_ = loop_.at(EventLoop::Clock::now() + half, [this] {
    if (life_.is_ending()) return;
    if (output_.said_bytes() == said_seen_ && output_.is_empty()) send_heartbeat();
    said_seen_ = output_.said_bytes();
    arm_heartbeat_timer();
  });
}

void SessionHeartbeats::send_heartbeat() {
  output_.send(session::Heartbeat{}, 0, 0);
  output_.flush();
}

}  // namespace lightq::broker
