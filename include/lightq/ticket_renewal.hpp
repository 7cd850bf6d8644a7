/// A new ticket where the broker has refused the old one, and an end to that. Layer: client.
#pragma once

#include <cstdint>
#include <utility>

#include <lightq/base/result.hpp>
#include <lightq/membership.hpp>

namespace lightq::inline v1 {

/// Of one plain socket. One thread.
class TicketRenewal {
 public:
  /// Joins again. `connections`: how often the broker has let the socket in, ever. Errors: the broker's,
  /// timeout; unauthorized_access: it has refused the ticket of the last join again at once.
  Result<EndpointAddress> join(Membership& membership, std::uint64_t connections) {
    if (std::exchange(fresh_, false) && connections == connections_at_join_) {
      return Error{
          ErrorCode::unauthorized_access,
          "topic '" + membership.topic() + "': the broker refuses the ticket that it has just given"};
    }
    Result<EndpointAddress> address = membership.join();
    fresh_ = address.ok();
    connections_at_join_ = connections;
    return address;
  }

 private:
  bool fresh_ = false;  // nobody was let in since the last join
  std::uint64_t connections_at_join_ = 0;
};

}  // namespace lightq::inline v1
