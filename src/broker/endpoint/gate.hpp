/// Who may come in at a topic's plain ZeroMQ endpoint. Layer: endpoint.
#pragma once

#include <string_view>

#include "broker/delivery/topic_definition.hpp"
#include "broker/endpoint/reactor_context.hpp"

namespace lightq::broker {

/// Everybody, or who shows a ticket for one topic and role. The reactor's thread.
class Gate {
 public:
  /// Everybody may.
  Gate() = default;
  /// Who shows a ticket that is good for `grant` may. The others outlive it.
  Gate(const TicketKey& tickets, const WallClock& now, const Grant& grant)
      : tickets_(&tickets), now_(&now), grant_(grant) {}

  [[nodiscard]] bool is_open() const { return tickets_ == nullptr; }
  /// Why the ticket does not let its bearer in, for the log; empty: it does. Lives as long as the program.
  [[nodiscard]] std::string_view objection(std::string_view id, std::string_view secret) const;

 private:
  const TicketKey* tickets_ = nullptr;
  const WallClock* now_ = nullptr;
  Grant grant_;
};

/// The gate of a topic's endpoints for a role: open if the topic is, or all are.
Gate gate_of(const TicketKey& tickets, const WallClock& now, const EndpointSettings& settings,
             const TopicDefinition& topic, EndpointRole role);

}  // namespace lightq::broker
