/// How far a session is on its way to its end, and the work that it has left. Layer: session.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include <lightq/protocol/session_link.hpp>

#include "net/event_loop.hpp"

namespace lightq::broker {

/// The stage of one session, and the calls that it wants from the loop. The session's parts share it: each
/// may ask for the session's end, which the session carries out when the present frame or call is over.
/// Thread: the reactor's.
class SessionLife {
 public:
  /// An end that a part of the session has asked for.
  struct End {
    session::Code code = session::Code::ok;
    std::string why;
  };

  /// `session` is called when it has work. Lifetime: both outlive it.
  SessionLife(EventLoop& loop, EventLoop::Source& session) : loop_(loop), session_(session) {}

  /// Returns true if the client has said goodbye, and the broker has not yet.
  [[nodiscard]] bool is_leaving() const { return stage_ == Stage::leaving; }
  /// Returns true if the broker has said goodbye. Nothing is sent after that.
  [[nodiscard]] bool is_ending() const { return stage_ == Stage::ending; }
  void leave() { stage_ = Stage::leaving; }
  void end() { stage_ = Stage::ending; }

  /// Asks for the end of the session. The first reason counts.
  void ask_end(session::Code code, std::string why) {
    if (is_ending() || wanted_end_) return;
    wanted_end_ = End{code, std::move(why)};
    work_soon();
  }
  /// Asks for the end of the session, because the client violates the protocol.
  void break_off(std::string why) { ask_end(session::Code::invalid_frame, std::move(why)); }
  /// Returns the end that is asked for, if any. It stays until the session has ended.
  [[nodiscard]] const std::optional<End>& wanted_end() const { return wanted_end_; }

  /// Notes a sign of life of the client.
  void hear(EventLoop::Clock::time_point when) { heard_ = when; }
  /// Returns the time of its last sign of life.
  [[nodiscard]] EventLoop::Clock::time_point heard() const { return heard_; }

  /// Schedules a call soon that continues the work that is due.
  void work_soon() { loop_.call_soon(session_); }
  /// Sends delivered messages at the end of the turn, together with those of other topics.
  void flush_at_turn_end() { loop_.call_last(session_); }

 private:
  enum class Stage { open, leaving, ending };

  EventLoop& loop_;
  EventLoop::Source& session_;
  Stage stage_ = Stage::open;
  EventLoop::Clock::time_point heard_;
  std::optional<End> wanted_end_;
};

}  // namespace lightq::broker
