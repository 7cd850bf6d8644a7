/// GET /metrics. Layer: http. docs/http.md.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include <lightq/base/limits.hpp>

#include "admission/limit_counts.hpp"
#include "admission/quota.hpp"
#include "http/control_gate.hpp"
#include "http/http_loop.hpp"
#include "http/router.hpp"
#include "http/topic_pages.hpp"
#include "metrics/latencies.hpp"

namespace lightq::broker {

/// Answers with the metrics of the topics that the user has a right on; an administrator also receives those
/// of the broker. Lifetime: the parts outlive it. Thread: the HTTP thread.
class MetricsResource {
 public:
  struct Parts {
    HttpLoop& loop;
    const ControlGate& gate;
    std::size_t topics_max = limits::metrics_topics_default;  ///< with series of their own
    std::function<LatencyCounts()> latencies;                 ///< any thread
    std::function<std::size_t()> control_connections;         ///< the control thread
    std::function<std::size_t()> http_connections;            ///< any thread
    LimitCounts* limits_reached = nullptr;                    ///< null: not counted
  };

  explicit MetricsResource(Parts parts);
  MetricsResource(const MetricsResource&) = delete;
  MetricsResource& operator=(const MetricsResource&) = delete;

  void add_to(Router& router);

 private:
  struct Scrape;

  void get(HttpExchange exchange);
  void begin(const std::shared_ptr<Scrape>& scrape, const Asker& asker, Operations& operations);
  void received(Scrape& scrape, Result<const StatsPage*> page);

  using Scrapes = Quota<std::string, std::mutex>;

  const Parts parts_;
  const TopicPages pages_;
  Scrapes scrapes_{{.total = limits::http_scrapes_max, .per_key = limits::http_scrapes_per_user_max}};
};

}  // namespace lightq::broker
