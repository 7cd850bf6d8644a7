/// The client of a single request for messages, as a reactor sees it. Layer: requests.
#pragma once

#include <cstdint>
#include <utility>

#include "access/access_table.hpp"
#include "access/endpoint_role.hpp"
#include "access/group_scope.hpp"
#include "access/ticket.hpp"
#include "topic/runtime/topic_runtime.hpp"

namespace lightq::broker {

/// Identifies the client of a request, and the right on one topic that it uses. The control thread has
/// checked its password. A request may wait, so its rights are checked again before it acts. A small value.
class Requester {
 public:
  /// `is_open`: the client is unauthenticated, and the topic is open.
  Requester(const TicketHolder& holder, bool is_open, EndpointRole role, GroupScope scope)
      : holder_(holder), is_open_(is_open), role_(role), scope_(std::move(scope)) {}

  /// Returns true if the client still has the right. Thread: the reactor's of `access`.
  [[nodiscard]] bool may(const AccessTable& access, const TopicRuntime& topic) const {
    const TopicDefinition& definition = topic.definition();
    return is_open_ || access.permits(holder_, {definition.id, role_}, definition.name, scope_);
  }
  /// Returns the number under which the client counts in shared limits.
  [[nodiscard]] std::uint64_t user() const { return holder_.sharer(); }
  /// Returns true if the client has no user, and the topic is open.
  [[nodiscard]] bool is_open() const { return is_open_; }
  [[nodiscard]] bool is_same_as(const Requester& other) const {
    return holder_ == other.holder_ && is_open_ == other.is_open_;
  }

 private:
  TicketHolder holder_;
  bool is_open_;
  EndpointRole role_;
  GroupScope scope_;
};

}  // namespace lightq::broker
