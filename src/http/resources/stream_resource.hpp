/// Messages as server-sent events. Layer: http. docs/http.md, "Stream".
#pragma once

#include <lightq/base/limits.hpp>

#include "admission/limit_counts.hpp"
#include "http/http_loop.hpp"
#include "http/messages/message_desks.hpp"
#include "http/router.hpp"
#include "http/streams/stream_places.hpp"

namespace lightq::broker {

/// Opens streams of messages. Lifetime: the parts outlive it. Thread: the HTTP thread.
class StreamResource {
 public:
  struct Parts {
    HttpLoop& loop;
    MessageDesks& desks;
    LimitCounts* limits_reached = nullptr;  ///< null: not counted
  };

  explicit StreamResource(const Parts& parts)
      : parts_(parts),
        places_(limits::http_streams_max, limits::http_streams_per_source_max),
        user_places_(limits::http_streams_max, limits::http_streams_per_source_max) {}
  StreamResource(const StreamResource&) = delete;
  StreamResource& operator=(const StreamResource&) = delete;

  void add_to(Router& router);

 private:
  void open(HttpExchange exchange);
  [[nodiscard]] HttpResponse refused() const;

  const Parts parts_;
  StreamPlaces places_;       // by source
  StreamPlaces user_places_;  // a user has as many as a source; all clients without a user count as one
};

}  // namespace lightq::broker
