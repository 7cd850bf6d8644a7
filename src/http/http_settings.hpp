/// The settings of HTTP. Layer: http.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include <lightq/base/limits.hpp>

#include "admission/limit_counts.hpp"
#include "base/log_sink.hpp"
#include "crypto/tls_context.hpp"

namespace lightq::broker {

/// The longest times that a connection may take. Tests shorten them.
struct HttpTimes {
  std::chrono::milliseconds first_byte{limits::http_first_byte_ms};
  std::chrono::milliseconds head{limits::http_head_ms};
  std::chrono::milliseconds body{limits::http_body_ms};
  std::chrono::milliseconds idle{limits::http_idle_ms};
  std::chrono::milliseconds work{limits::http_work_ms};
  std::chrono::milliseconds send{limits::http_send_ms};
  std::chrono::milliseconds linger{limits::http_linger_ms};
};

struct HttpSettings {
  const TlsContext* tls = nullptr;  ///< null: nothing is encrypted; outlives the server
  std::vector<std::string> names;   ///< see HostNames
  std::size_t connections_max = limits::http_connections_max;
  std::size_t connections_per_source_max = limits::http_connections_per_source_max;
  std::size_t bodies_bytes_total = limits::http_bodies_bytes_total;
  std::size_t responses_bytes_total = limits::http_responses_bytes_total;
  std::size_t requests_per_second = limits::requests_per_second_default;  ///< of one source
  HttpTimes times = {};
  LimitCounts* limits_reached = nullptr;  ///< null: not counted; outlives the server
};

}  // namespace lightq::broker
