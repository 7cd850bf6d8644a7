/// GET /healthz and /readyz. Layer: http. docs/http.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <lightq/base/limits.hpp>
#include <lightq/base/result.hpp>

#include "http/control_gate.hpp"
#include "http/http_loop.hpp"
#include "http/progress_watch.hpp"
#include "http/router.hpp"
#include "http/topic_pages.hpp"
#include "topic/reactor/progress_probe.hpp"

namespace lightq::broker {

/// Answers whether the process runs, and whether it makes progress. Needs no login, and names no topic. A
/// check of progress serves all requests of the next second, so that many requests cost no more than one.
/// Lifetime: the parts outlive it. Thread: the HTTP thread.
class HealthResource {
 public:
  struct Parts {
    HttpLoop& loop;
    const ControlGate& gate;
    /// Makes bytes durable by way of every reactor and the disk's thread. Calls `done` once, on any thread.
    std::function<void(const ProgressProbe::Done& done)> probe;
    std::uint64_t free_bytes_min = 0;  ///< appends wait with less
    bool flushes = true;               ///< see ProgressWatch
    std::chrono::milliseconds longest{limits::ready_probe_ms};
    std::chrono::milliseconds again{limits::ready_again_ms};
    std::chrono::milliseconds stall{limits::ready_stall_ms};
  };

  explicit HealthResource(Parts parts);
  HealthResource(const HealthResource&) = delete;
  HealthResource& operator=(const HealthResource&) = delete;

  void add_to(Router& router);

 private:
  struct Check;

  void ready(HttpExchange exchange);
  void begin();
  void ask_topics(const std::shared_ptr<Check>& check);
  void finish(const std::shared_ptr<Check>& check);

  const Parts parts_;
  const TopicPages pages_;
  ProgressWatch watch_;
  std::vector<HttpReply> waiting_;  // for the check that is under way
  std::shared_ptr<Check> check_;    // under way
  std::optional<HttpResponse> last_;
  HttpLoop::Clock::time_point last_at_;
};

}  // namespace lightq::broker
