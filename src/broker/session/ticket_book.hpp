/// Tickets: what a join gives, and a session shows to prove it. Layer: session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>
#include <lightq/protocol/control.hpp>

#include "broker/endpoint/endpoint_record.hpp"

namespace lightq::broker {

/// What a ticket permits.
struct Grant {
  TopicId topic;
  EndpointRole role = EndpointRole::produce;
};

/// The tickets of one reactor's topics, each valid for a fixed time. Unused ones go by themselves; nothing
/// of them outlives the process. The reactor's thread.
class TicketBook {
 public:
  TicketBook(std::size_t tickets_max, std::int64_t lifetime_us)
      : tickets_max_(tickets_max), lifetime_us_(lifetime_us) {}

  /// Errors: limit_reached (tickets_max are valid).
  Result<protocol::SessionTicket> issue(Grant grant, Timestamp now);
  /// What the ticket `ID.SECRET` permits; nothing if it is none, or not valid any more.
  [[nodiscard]] std::optional<Grant> find(std::string_view shown, Timestamp now) const;

 private:
  struct Entry {
    std::string secret;
    Grant grant;
    Timestamp expires;
  };
  void expire(Timestamp now);

  const std::size_t tickets_max_;
  const std::int64_t lifetime_us_;
  std::unordered_map<std::string, Entry> by_id_;
  std::deque<std::string> order_;  // ids, the oldest first
};

}  // namespace lightq::broker
