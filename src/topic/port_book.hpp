/// Decides which TCP ports endpoints listen on. The port of a closed endpoint is quarantined for a while: a
/// ZeroMQ client of that endpoint reconnects silently to any program that listens there. Layer: topic.
/// docs/protocol.md, "An endpoint's life".
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "admission/limit_counts.hpp"
#include "net/socket.hpp"
#include "topic/resting_ports.hpp"

namespace lightq::broker {

/// Records which ports are in use, quarantined, or reserved for an endpoint of an earlier run. Thread: any.
class PortBook {
 public:
  using Clock = RestingPorts::Clock;

  /// Ports from `first` to `last`, both included.
  struct Range {
    std::uint16_t first = 0;
    std::uint16_t last = 0;
  };

  /// `host`: a numeric address to listen on. `range`: the ports to use; without it the system chooses.
  /// `rest`: how long a released port is quarantined; `listen` says when such a port is used earlier.
  PortBook(std::string host, std::optional<Range> range, std::chrono::milliseconds rest)
      : host_(std::move(host)),
        range_(range),
        rest_(rest),
        ports_in_all_(count_of(range)),
        next_(range ? range->first : std::uint16_t{0}) {}

  /// Returns the number of ports in the range, or without one in the system's range of local ports.
  static std::size_t count_of(const std::optional<Range>& range);
  /// Sets the counters of refusals. Requires: no other function was called. Lifetime: `counts` outlives this.
  void count_in(LimitCounts* counts) { counts_ = counts; }

  /// Listens on a port for `use`. A producers' endpoint gets the port that the topic's producers had before,
  /// if that is quarantined. Otherwise prefers a fresh port: one that neither has an endpoint nor is
  /// quarantined. Once fewer than half of all ports are fresh, prefers the best quarantined port
  /// (RestingPorts::best). If no port of the preferred kind can be used, the other kind is tried. Errors:
  /// limit_reached (no descriptor or no port is free), io_error.
  Result<ListeningSocket> listen(const PortUse& use);
  /// Reserves the port for an endpoint that will open again. The reservation ends when listen_again gets the
  /// port or finds it in use, or with `release`.
  void reserve(std::uint16_t port);
  /// Listens on exactly this port, for an endpoint that had it before. Errors: address_in_use, limit_reached,
  /// io_error.
  Result<ListeningSocket> listen_again(std::uint16_t port);
  /// Called when the port's endpoint has closed: quarantines the port. `had`: the endpoint's use. `unused`:
  /// no client was ever connected to it.
  void release(std::uint16_t port, const PortUse& had, bool unused);
  /// Quarantines the port until `when`, with its use unknown.
  void rest_until(std::uint16_t port, Clock::time_point when);

 private:
  using Found = std::optional<Result<ListeningSocket>>;  // nothing: no port was found in this way

  [[nodiscard]] bool not_to_be_given(std::uint16_t port) const;
  Found find(const PortUse& use);
  Found listen_any();
  Found listen_in(Range range);
  Found listen_at_own(const PortUse& use);
  Found listen_at_best(const PortUse& use);
  Found listen_at_resting(std::uint16_t port);
  void taken(std::uint16_t port);
  void put_to_rest(std::uint16_t port, const PortUse& had, bool unused, Clock::time_point until);
  [[nodiscard]] Error no_port() const;

  const std::string host_;
  const std::optional<Range> range_;
  const std::chrono::milliseconds rest_;
  const std::size_t ports_in_all_;
  LimitCounts* counts_ = nullptr;
  std::mutex mutex_;
  std::uint16_t next_;                // guarded by mutex_; the port of the range to try first
  RestingPorts resting_;              // guarded by mutex_
  std::set<std::uint16_t> reserved_;  // guarded by mutex_
  std::set<std::uint16_t> in_use_;    // guarded by mutex_; an endpoint listens on them
};

}  // namespace lightq::broker
