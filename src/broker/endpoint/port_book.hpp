/// Which TCP ports endpoints may listen on, and which must rest because clients of a closed endpoint may
/// still be trying to reach it: a ZeroMQ client reconnects silently to whoever has the port. Layer: endpoint.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "broker/endpoint/limit_counts.hpp"
#include "broker/endpoint/socket.hpp"

namespace lightq::broker {

/// Any thread.
class PortBook {
 public:
  using Clock = std::chrono::steady_clock;

  struct Range {
    std::uint16_t first = 0;
    std::uint16_t last = 0;
  };

  /// `host`: a numeric address. `range`: nothing lets the system choose. `rest`: how long a released port is
  /// left alone. `refusals`: where what listen() refuses is counted, which outlives it; null: nowhere.
  PortBook(std::string host, std::optional<Range> range, std::chrono::milliseconds rest,
           LimitCounts* refusals = nullptr)
      : host_(std::move(host)),
        range_(range),
        rest_(rest),
        refusals_(refusals),
        next_(range ? range->first : std::uint16_t{0}) {}

  /// Listens on a free port. Errors: limit_reached (descriptors, or no port of the range is free), io_error.
  Result<ListeningSocket> listen();
  /// This port belongs to an endpoint that is about to open again: nobody else is given it until
  /// listen_again.
  void reserve(std::uint16_t port);
  /// Listens on this very port, for an endpoint that had it before. Errors: address_in_use, limit_reached,
  /// io_error.
  Result<ListeningSocket> listen_again(std::uint16_t port);
  /// The port's endpoint closed now.
  void release(std::uint16_t port) { rest_until(port, Clock::now() + rest_); }
  void rest_until(std::uint16_t port, Clock::time_point when);

 private:
  [[nodiscard]] bool not_to_be_given(std::uint16_t port);
  Result<ListeningSocket> listen_any();
  Result<ListeningSocket> counted(Result<ListeningSocket> socket);
  [[nodiscard]] Error no_port(const std::string& why);
  Result<ListeningSocket> listen_in(Range range);

  const std::string host_;
  const std::optional<Range> range_;
  const std::chrono::milliseconds rest_;
  LimitCounts* const refusals_;
  std::mutex mutex_;
  std::uint16_t next_;                                  // of the range, tried first
  std::map<std::uint16_t, Clock::time_point> resting_;  // guarded by mutex_
  std::set<std::uint16_t> reserved_;                    // guarded by mutex_
};

}  // namespace lightq::broker
