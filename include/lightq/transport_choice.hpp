/// By which transport a session joins: the one that was asked for, or the best one that works. Layer: client.
#pragma once

#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <lightq/base/error.hpp>
#include <lightq/protocol/control.hpp>
#include <lightq/session_clock.hpp>

namespace lightq::inline v1 {

/// Remembers over one session's joins. A value; one thread at a time.
class TransportChoice {
 public:
  /// After so long, what did not come about is tried once more.
  static constexpr std::chrono::seconds trial_time{10};

  /// `asked_for`: there is no choice. `same_machine`: whether the broker is on this one, as far as its
  /// control address says; it may be behind a port that is passed on.
  TransportChoice(std::optional<protocol::Transport> asked_for, bool same_machine)
      : fixed_(asked_for), may_be_local_(same_machine) {}

  /// For the next join. A Unix socket; or TCP, where the broker is elsewhere, or where no session came about
  /// at the Unix socket that was answered last.
  [[nodiscard]] protocol::Transport next(SessionTime now) {
    using protocol::Transport;
    if (fixed_) return *fixed_;
    if (const auto opened = std::exchange(opened_, nullptr); opened != nullptr && !*opened)
      tcp_until_ = now + trial_time;
    return may_be_local_ && now >= tcp_until_ ? Transport::ipc : Transport::tcp;
  }
  /// A join by a Unix socket was answered. To be set to true when a session has come about there.
  [[nodiscard]] std::shared_ptr<bool> answered() { return opened_ = std::make_shared<bool>(false); }
  /// Whether such an error of a join by a Unix socket says that it should be joined by TCP instead.
  [[nodiscard]] bool goes_on_with_tcp(const Error& error) const {
    if (fixed_) return false;
    return error.code == ErrorCode::invalid_argument || error.code == ErrorCode::io_error ||
           error.code == ErrorCode::address_in_use || error.code == ErrorCode::limit_reached;
  }
  /// Whether `uri`, which a join by a Unix socket has answered, should be left for TCP: there is no such
  /// socket here, or this process may not use it.
  [[nodiscard]] bool goes_on_with_tcp(const std::string& uri) const {
    constexpr std::string_view scheme = "ipc://";
    return !fixed_ && uri.starts_with(scheme) && ::access(uri.c_str() + scheme.size(), W_OK) != 0;
  }

 private:
  std::optional<protocol::Transport> fixed_;
  bool may_be_local_;
  std::shared_ptr<bool> opened_;  // at the Unix socket that was answered last; null: none was
  SessionTime tcp_until_ = SessionTime::min();
};

}  // namespace lightq::inline v1
