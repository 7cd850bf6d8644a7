/// Chooses the transport for a session's joins: the requested one, or the best one that works. Layer: client.
#pragma once

#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <lightq/base/error.hpp>
#include <lightq/detail/session_clock.hpp>
#include <lightq/protocol/control.hpp>

namespace lightq::inline v1 {

/// Remembers the results of one session's joins. A value type. Thread: one at a time.
class TransportChoice {
 public:
  /// The time after which a Unix socket that did not work is tried again.
  static constexpr std::chrono::seconds trial_time{10};

  /// With `asked_for`, that transport is always used. `same_machine`: the control address is on this machine.
  /// The broker may still be elsewhere, behind a forwarded port.
  TransportChoice(std::optional<protocol::Transport> asked_for, bool same_machine)
      : fixed_(asked_for), may_be_local_(same_machine) {}

  /// Returns the transport for the next join: normally a Unix socket. TCP if the broker is on another
  /// machine, or if the last Unix socket led to no session.
  [[nodiscard]] protocol::Transport next(SessionTime now) {
    using protocol::Transport;
    if (fixed_) return *fixed_;
    if (const auto opened = std::exchange(opened_, nullptr); opened != nullptr && !*opened)
      tcp_until_ = now + trial_time;
    return may_be_local_ && now >= tcp_until_ ? Transport::ipc : Transport::tcp;
  }
  /// Records that a join named a Unix socket. Set the returned value to true when a session is established
  /// there.
  [[nodiscard]] std::shared_ptr<bool> answered() { return opened_ = std::make_shared<bool>(false); }
  /// Returns true if after this error of a join by a Unix socket the client should join by TCP.
  [[nodiscard]] bool goes_on_with_tcp(const Error& error) const {
    if (fixed_) return false;
    return error.code == ErrorCode::invalid_argument || error.code == ErrorCode::io_error ||
           error.code == ErrorCode::address_in_use || error.code == ErrorCode::limit_reached;
  }
  /// Returns true if the client should join by TCP because it cannot use `uri`, the result of a join by a
  /// Unix socket. There is no such socket on this machine, or this process may not use it.
  [[nodiscard]] bool goes_on_with_tcp(const std::string& uri) const {
    constexpr std::string_view scheme = "ipc://";
    return !fixed_ && uri.starts_with(scheme) && ::access(uri.c_str() + scheme.size(), W_OK) != 0;
  }

 private:
  std::optional<protocol::Transport> fixed_;
  bool may_be_local_;
  std::shared_ptr<bool> opened_;  // for the Unix socket named last; null: none was
  SessionTime tcp_until_ = SessionTime::min();
};

}  // namespace lightq::inline v1
