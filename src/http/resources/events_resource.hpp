/// GET /api/v1/events. Layer: http. docs/http.md, "Live statistics".
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <lightq/base/limits.hpp>

#include "admission/limit_counts.hpp"
#include "control/rights/asker.hpp"
#include "http/control_gate.hpp"
#include "http/http_loop.hpp"
#include "http/router.hpp"
#include "http/streams/stream_places.hpp"
#include "metrics/disk_use.hpp"

namespace lightq::broker {

/// Opens streams of live statistics, a bounded number of them. Lifetime: the parts outlive it. Thread: the
/// HTTP thread.
class EventsResource {
 public:
  struct Parts {
    HttpLoop& loop;
    const ControlGate& gate;
    std::function<std::size_t()> control_connections;  ///< called on the control thread
    std::function<std::size_t()> http_connections;
    std::function<std::optional<DiskUse>()> disk;
    LimitCounts* limits_reached = nullptr;  ///< null: not counted
  };

  explicit EventsResource(Parts parts)
      : parts_(std::move(parts)),
        places_(limits::http_viewers_max, limits::http_viewers_per_source_max),
        user_places_(limits::http_viewers_max, limits::http_viewers_per_source_max) {}
  EventsResource(const EventsResource&) = delete;
  EventsResource& operator=(const EventsResource&) = delete;

  void add_to(Router& router);

 private:
  using SendMore = std::function<void(std::string_view part, bool is_last)>;

  void open(HttpExchange exchange);
  void begin(const std::string& source, const Asker& asker, const HttpReply& reply,
             const SendMore& send_more);

  const Parts parts_;
  StreamPlaces places_;       // by source
  StreamPlaces user_places_;  // a user has as many as a source
};

}  // namespace lightq::broker
