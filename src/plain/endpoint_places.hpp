/// The places of a topic's endpoints among all endpoints of the broker. Layer: plain.
#pragma once

#include <cstdint>
#include <optional>

#include <lightq/base/error.hpp>

#include "access/connection_authorizer.hpp"
#include "access/ticket.hpp"
#include "admission/endpoint_shares.hpp"
#include "admission/limit_counts.hpp"
#include "delivery/topic_definition.hpp"
#include "topic/endpoint_record.hpp"
#include "topic/reactor_context.hpp"

namespace lightq::broker {

/// Takes and returns places in EndpointShares. Does nothing if endpoints are not limited. EndpointSet owns
/// it. Thread: the reactor's.
class EndpointPlaces {
 public:
  /// Lifetime: both outlive this.
  EndpointPlaces(ReactorContext& context, const TopicDefinition& topic) : context_(context), topic_(topic) {}

  /// Takes a place. `joined_by`: the user whose join opens the endpoint; nothing: it existed before and
  /// always gets a place. Closes the endpoints that are evicted for it: those of this reactor now, those of
  /// other reactors soon. Returns the reason if the join is refused.
  std::optional<Error> take(const EndpointRecord& record, const std::optional<TicketHolder>& joined_by,
                            const ConnectionAuthorizer& authorizer);
  /// Returns the endpoint's place.
  void give_back(std::uint64_t id);
  /// Logs a refusal at most once in said_again_after, because a refused client may ask again and again.
  void say_refused(Limit limit, const Error& why);

 private:
  [[nodiscard]] EndpointShares::Place place_of(const EndpointRecord& record, std::uint64_t user) const;

  ReactorContext& context_;
  const TopicDefinition& topic_;
};

}  // namespace lightq::broker
