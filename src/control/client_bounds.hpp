/// The bounds that clients of the control socket share. Layer: control.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

#include <lightq/base/limits.hpp>

#include "admission/quota.hpp"
#include "admission/token_bucket.hpp"
#include "control/control_limits.hpp"
#include "control/requests_under_way.hpp"

namespace lightq::broker {

/// The bounds of each source and each user of the control commands: requests a second, long replies a second,
/// requests under way, and memory for unread replies. ControlServer owns it. A second listener, on any
/// thread, would take a reference to the same object. Then a client has these bounds once, on both listeners
/// together. Thread: any; each member locks for itself, once or twice for a request.
///
/// Not here, because each thread has its own: the bounds on connections (HandshakeQueue, EvictionQueue,
/// AcceptBudget). Only the thread of a connection can end it.
struct ClientBounds {
  ClientBounds(const ControlLimits& limits, std::size_t requests_per_second)
      : requests(Rate(requests_per_second), limits::login_sources_max),
        replies(Rate(requests_per_second), limits::login_sources_max),
        under_way(limits),
        unread({.total = limits.answers_unread_bytes_total,
                .per_key = limits.answers_unread_bytes_per_source()}) {}

  /// Sets another rate, and another limit for unread replies. The other limits stay.
  void change(const ControlLimits& limits, std::size_t requests_per_second) {
    requests.set_rate(Rate(requests_per_second));
    replies.set_rate(Rate(requests_per_second));
    unread.set_bounds(
        {.total = limits.answers_unread_bytes_total, .per_key = limits.answers_unread_bytes_per_source()});
  }

  /// Returns the tokens that a reply costs, or work that takes as much as such a reply: one for each KiB,
  /// rounded up, because a KiB of reply takes about as much work as one request.
  [[nodiscard]] static double cost_of(std::uint64_t reply_bytes) {
    return static_cast<double>((reply_bytes + limits::KiB - 1) / limits::KiB);
  }

  TokenBucket<std::string, std::mutex> requests;  ///< by source
  TokenBucket<std::string, std::mutex> replies;   ///< long replies, by asker; in cost_of()
  RequestsUnderWay under_way;
  Quota<std::string, std::mutex> unread;  ///< bytes of replies that clients have not read, by source
};

}  // namespace lightq::broker
