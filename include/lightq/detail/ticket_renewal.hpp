/// Gets a new ticket when the broker has refused the old one, and stops when that does not help. Layer:
/// client.
#pragma once

#include <cstdint>
#include <utility>

#include <lightq/base/result.hpp>
#include <lightq/detail/membership.hpp>

namespace lightq::inline v1 {

/// The ticket renewals of one plain socket. For one thread.
class TicketRenewal {
 public:
  /// Joins again. `connections` is how often the broker has accepted the socket in total. Errors: the
  /// broker's, timeout, and unauthorized_access if the broker has refused the ticket of the last join without
  /// accepting it once.
  Result<EndpointAddress> join(Membership& membership, std::uint64_t connections) {
    if (std::exchange(fresh_, false) && connections == connections_at_join_) {
      return Error{
          ErrorCode::unauthorized_access,
          "topic '" + membership.topic() + "': the broker refuses the ticket that it has just issued"};
    }
    Result<EndpointAddress> address = membership.join();
    fresh_ = address.ok();
    connections_at_join_ = connections;
    return address;
  }

 private:
  bool fresh_ = false;  // no connection was accepted since the last join
  std::uint64_t connections_at_join_ = 0;
};

}  // namespace lightq::inline v1
