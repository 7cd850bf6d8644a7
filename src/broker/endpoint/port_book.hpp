/// Which TCP ports endpoints may listen on, and which must rest because clients of a closed endpoint may
/// still be trying to reach it: a ZeroMQ client reconnects silently to whoever has the port. Layer: endpoint.
/// docs/protocol.md, "An endpoint's life".
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "broker/endpoint/limit_counts.hpp"
#include "broker/endpoint/resting_ports.hpp"
#include "broker/endpoint/socket.hpp"

namespace lightq::broker {

/// Any thread.
class PortBook {
 public:
  using Clock = RestingPorts::Clock;

  struct Range {
    std::uint16_t first = 0;
    std::uint16_t last = 0;
  };

  /// `host`: a numeric address. `range`: nothing lets the system choose. `rest`: how long a released port is
  /// left alone, as long as half of all ports have no endpoint and do not rest.
  PortBook(std::string host, std::optional<Range> range, std::chrono::milliseconds rest)
      : host_(std::move(host)),
        range_(range),
        rest_(rest),
        ports_in_all_(count_of(range)),
        next_(range ? range->first : std::uint16_t{0}) {}

  /// How many ports there are: of the range, or those that the system gives to who names none.
  static std::size_t count_of(const std::optional<Range>& range);
  /// Before it is used: where refusals are counted, which outlives it.
  void count_in(LimitCounts* counts) { counts_ = counts; }

  /// Listens on a port that may be had for this: one that does not rest; or, if more than half of all have
  /// endpoints or rest, or there is no other, the best of those that rest (RestingPorts). A producers'
  /// endpoint has the one again that the topic's had before. Errors: limit_reached (descriptors, or no port
  /// is to be had), io_error.
  Result<ListeningSocket> listen(const PortUse& use);
  /// This port belongs to an endpoint that is about to open again: nobody else is given it until listen_again
  /// had it, or found it in use, or release.
  void reserve(std::uint16_t port);
  /// Listens on this very port, for an endpoint that had it before. Errors: address_in_use, limit_reached,
  /// io_error.
  Result<ListeningSocket> listen_again(std::uint16_t port);
  /// The port's endpoint, which was for `had`, closed now. `unused`: nobody was ever connected.
  void release(std::uint16_t port, const PortUse& had, bool unused);
  /// It rests, for nobody knows what.
  void rest_until(std::uint16_t port, Clock::time_point when);

 private:
  using Found = std::optional<Result<ListeningSocket>>;  // nothing: no port is to be had so

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
  std::uint16_t next_;                // of the range, tried first
  RestingPorts resting_;              // guarded by mutex_
  std::set<std::uint16_t> reserved_;  // guarded by mutex_
  std::set<std::uint16_t> in_use_;    // guarded by mutex_; given, and not released
};

}  // namespace lightq::broker
