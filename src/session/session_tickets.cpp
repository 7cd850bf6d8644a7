/// Checks a session's tickets, and the users that the session counts for. Layer: session.
#include "session/session_tickets.hpp"

#include <algorithm>

#include "admission/fair_share.hpp"
#include "admission/turn_work.hpp"

namespace lightq::broker {

using session::Code;

SessionTickets::Refusal SessionTickets::show_first(std::string_view ticket) {
  const auto permit = host_.permit_of(ticket);
  is_refused_ = !permit;
  if (is_refused_) return {Code::unauthorized_access, "the ticket is not valid (any more): join again"};
  const std::uint64_t user = permit->holder.sharer();
  if (const std::string_view objection = host_.admit(user); !objection.empty())
    return {Code::limit_reached, std::string(objection)};
  if (user != 0) users_.insert(user);
  permits_.add(host_.topic_name(permit->grant.topic), *permit);
  is_admitted_ = true;
  return {};
}

SessionTickets::Refusal SessionTickets::show_another(std::string_view ticket) {
  const auto permit = host_.permit_of(ticket);
  if (!permit) return {Code::unauthorized_access, "the ticket is not valid (any more)"};
  const std::string topic = host_.topic_name(permit->grant.topic);
  const bool known = permits_.contains(topic, *permit);
  if (!known) {
    if (auto refusal = make_room_for_another(); refusal.code != Code::ok) return refusal;
  }
  if (const std::string_view objection = admit_also(permit->holder.sharer()); !objection.empty())
    return {Code::limit_reached, std::string(objection)};
  if (!known) permits_.add(topic, *permit);
  return {};
}

/// Refuses a ticket if the session has the maximum of valid ones.
SessionTickets::Refusal SessionTickets::make_room_for_another() {
  const std::size_t most = host_.session_settings().channels_max;
  if (permits_.size() < most) return {};
  TurnWork::add(TurnWork::batch_passed * permits_.size());
  permits_.erase_if([&](const SessionPermit& old) {
    const TopicRuntime* const found = host_.find_topic(old.grant.topic);
    return found == nullptr || !host_.is_good(old, *found, GroupScope::some_group());
  });
  if (permits_.size() < most) return {};
  limit_reached(Limit::session_channels_max);
  return {Code::limit_reached, "more tickets than session_channels_max allows"};
}

/// Counts the session for this user too. Returns the reason if that is not possible, else an empty text. A
/// ticket that any client can get does not count an authenticated session among the clients without a user.
std::string_view SessionTickets::admit_also(std::uint64_t user) {
  if (user == 0 || user == FairShare::anonymous || users_.contains(user)) return {};
  const std::string_view objection = host_.admit_also(user);
  if (objection.empty()) users_.insert(user);
  return objection;
}

TopicRuntime* SessionTickets::permitted(const std::string& topic, EndpointRole role, const GroupScope& scope,
                                        std::uint64_t* user) const {
  for (const SessionPermit& permit : permits_.of(topic)) {
    if (permit.grant.role != role) continue;
    TopicRuntime* const found = host_.find_topic(permit.grant.topic);
    if (found == nullptr) continue;
    if (user != nullptr) *user = permit.holder.sharer();
    if (host_.is_good(permit, *found, scope)) return found;
  }
  return nullptr;
}

bool SessionTickets::may_manage(const TopicRuntime& topic, const GroupScope& scope) const {
  const auto permits = permits_.of(std::string(topic.definition().name.text()));
  return std::ranges::any_of(permits, [&](const SessionPermit& permit) {
    return permit.grant.topic == topic.definition().id && host_.may_manage(permit, topic, scope);
  });
}

bool SessionTickets::has_ticket_for(TopicId topic) const {
  const auto permits = permits_.of(host_.topic_name(topic));
  return std::ranges::any_of(permits,
                             [topic](const SessionPermit& permit) { return permit.grant.topic == topic; });
}

bool SessionTickets::drop_invalid() {
  const auto gone = permits_.erase_if([&](const SessionPermit& permit) {
    const TopicRuntime* const topic = host_.find_topic(permit.grant.topic);
    return topic != nullptr && !host_.is_good(permit, *topic, GroupScope::some_group());
  });
  return gone > 0 && permits_.empty();
}

}  // namespace lightq::broker
