/// The places of a topic's endpoints among all endpoints of the broker. Layer: plain.
#include "plain/endpoint_places.hpp"

#include "admission/fair_share.hpp"

namespace lightq::broker {

using protocol::Transport;

EndpointShares::Place EndpointPlaces::place_of(const EndpointRecord& record, std::uint64_t user) const {
  return {record.id, record.topic, record.transport == Transport::tcp, user, &context_};
}

std::optional<Error> EndpointPlaces::take(const EndpointRecord& record,
                                          const std::optional<TicketHolder>& joined_by,
                                          const ConnectionAuthorizer& authorizer) {
  auto* const shares = context_.settings.endpoint_shares;
  if (shares == nullptr) return std::nullopt;
  if (!joined_by) {
    shares->add(place_of(record, record.user));
    return std::nullopt;
  }
  const bool is_anonymous = *joined_by == TicketHolder{} && authorizer.is_open();
  const auto wanted = place_of(record, is_anonymous ? FairShare::anonymous : joined_by->user);
  const auto evicted = shares->take(wanted, EventLoop::Clock::now());
  if (!evicted) {
    say_refused(Limit::endpoints_max, evicted.error());
    return evicted.error();
  }
  for (const auto& each : *evicted) {
    if (each.at == &context_) {
      context_.make_room(each);
    } else {
      each.at->loop.post_answer([each] { each.at->make_room(each); });
    }
  }
  return std::nullopt;
}

void EndpointPlaces::give_back(std::uint64_t id) {
  if (auto* const shares = context_.settings.endpoint_shares; shares != nullptr) shares->give_back(id);
}

void EndpointPlaces::say_refused(Limit limit, const Error& why) {
  auto* const shares = context_.settings.endpoint_shares;
  if (shares == nullptr || !shares->is_to_be_said(limit, EventLoop::Clock::now())) return;
  context_.sink.warn("topic " + topic_.name.text() + ": a join was refused: " + why.message);
}

}  // namespace lightq::broker
