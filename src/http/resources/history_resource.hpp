/// GET /api/v1/topics/TOPIC/history. Layer: http. docs/http.md, "History".
#pragma once

#include <utility>

#include "http/control_gate.hpp"
#include "http/http_loop.hpp"
#include "http/messages/message_desks.hpp"
#include "http/router.hpp"

namespace lightq::broker {

/// Answers with the samples of the last hour of one topic, to clients with any right on it. Lifetime: the
/// parts outlive it. Thread: the HTTP thread.
class HistoryResource {
 public:
  struct Parts {
    HttpLoop& loop;
    const ControlGate& gate;
    MessageDesks::OnTopic on_topic;  ///< any thread
  };

  explicit HistoryResource(Parts parts) : parts_(std::move(parts)) {}
  HistoryResource(const HistoryResource&) = delete;
  HistoryResource& operator=(const HistoryResource&) = delete;

  void add_to(Router& router);

 private:
  void read(HttpExchange exchange) const;

  const Parts parts_;
};

}  // namespace lightq::broker
