/// Limits for clients of the control socket: requests, connections and unread replies. Layer: control.
#pragma once

#include <algorithm>
#include <cstddef>

#include <lightq/base/limits.hpp>

namespace lightq::broker {

/// The broker's settings; limits.hpp describes each. One source may use a quarter of requests_waiting_max and
/// of answers_unread_bytes_total.
struct ControlLimits {
  std::size_t request_bytes_max = limits::request_bytes_max;
  std::size_t requests_waiting_max = limits::requests_waiting_max;
  std::size_t connections_max = limits::control_connections_max;
  std::size_t answers_unread_bytes_max = limits::answers_unread_bytes_max;
  std::size_t answers_unread_bytes_total = limits::answers_unread_bytes_total_default;

  static constexpr std::size_t sources_that_fill_it = 4;  // each has at most an equal part of a shared limit
  [[nodiscard]] std::size_t requests_waiting_per_source_max() const {
    return std::max<std::size_t>(1, requests_waiting_max / sources_that_fill_it);
  }
  [[nodiscard]] std::size_t answers_unread_bytes_per_source() const {
    return answers_unread_bytes_total / sources_that_fill_it;
  }
};
static_assert(limits::requests_waiting_per_source_max * ControlLimits::sources_that_fill_it ==
              limits::requests_waiting_max);

}  // namespace lightq::broker
