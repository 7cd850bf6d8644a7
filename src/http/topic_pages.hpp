/// Reads the statistics of all topics in pages. Layer: http.
#pragma once

#include <functional>
#include <memory>

#include <lightq/base/result.hpp>

#include "control/commands/operations.hpp"
#include "control/rights/asker.hpp"
#include "http/control_gate.hpp"
#include "http/http_loop.hpp"

namespace lightq::broker {

/// Reads the statistics of the topics that an asker knows. A page has up to 2,048 topics, and costs one
/// message to each reactor; so the memory that is needed does not grow with the number of topics.
class TopicPages {
 public:
  /// Called with each page, then once with nothing at the end, or with the error that ended it. Thread: the
  /// HTTP thread.
  using Receive = std::function<void(Result<const StatsPage*> page)>;

  /// Lifetime: both outlive the object.
  TopicPages(HttpLoop& loop, const ControlGate& gate) : loop_(loop), gate_(gate) {}

  /// Thread: the control thread.
  void read(Operations& operations, const Asker& asker, TopicsWanted wanted, Receive receive) const;

 private:
  void ask(Operations& operations, const Asker& asker, TopicsWanted wanted,
           const std::shared_ptr<const Receive>& receive) const;

  HttpLoop& loop_;
  const ControlGate& gate_;
};

}  // namespace lightq::broker
