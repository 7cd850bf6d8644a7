/// Decides whether a user may create another topic. Layer: control.
#include "control/commands/topic_quota.hpp"

namespace lightq::broker {

std::optional<Error> TopicQuota::objection_to_maker(std::uint64_t maker) const {
  const std::size_t taken = catalogue_.state().topics().size() + coming_.size();
  const auto verdict = FairShare(settings_.topics_max).ask(taken, maker, topics_.of(maker));
  if (verdict == FairShare::Verdict::room) return std::nullopt;
  count(settings_.limits_reached, Limit::topics_max);
  const std::string most = std::to_string(settings_.topics_max);
  if (verdict == FairShare::Verdict::full)
    return Error{ErrorCode::limit_reached, "there are " + most + " topics, the maximum (topics_max)"};
  return Error{ErrorCode::limit_reached, "there are " + std::to_string(topics_.of(maker)) +
                                             " topics of this user, and the last of " + most +
                                             " are reserved for users with fewer"};
}

std::optional<Error> TopicQuota::objection_to_ring(const protocol::TopicSettings& settings) const {
  if (!has_ring(settings.broker_type) || settings.ring_bytes <= settings_.ring_bytes_max) return std::nullopt;
  count(settings_.limits_reached, Limit::ring_bytes_max);
  return Error{ErrorCode::limit_reached, "ring_bytes: " + std::to_string(settings.ring_bytes) +
                                             " exceeds this broker's ring_bytes_max of " +
                                             std::to_string(settings_.ring_bytes_max)};
}

/// A ring is mapped whole when its topic starts and filled later, so its maximum size counts.
std::optional<Error> TopicQuota::objection_to_memory(const protocol::TopicSettings& settings,
                                                     std::uint64_t maker) const {
  if (settings_.memory_bytes_max == 0 || !has_ring(settings.broker_type)) return std::nullopt;
  std::uint64_t taken = 0;
  for (const auto& [name, entry] : catalogue_.state().topics()) {
    const auto& each = entry.definition.settings;
    if (has_ring(each.broker_type)) taken += each.ring_bytes;
  }
  const std::uint64_t own = rings_.of(maker);
  const auto verdict = FairShare(settings_.memory_bytes_max).ask(taken, maker, own, settings.ring_bytes);
  if (verdict == FairShare::Verdict::room) return std::nullopt;
  count(settings_.limits_reached, Limit::memory_bytes_max);
  const std::string most = std::to_string(settings_.memory_bytes_max);
  if (verdict == FairShare::Verdict::full)
    return Error{ErrorCode::limit_reached, "the rings of all topics would be " +
                                               std::to_string(taken + settings.ring_bytes) +
                                               " bytes, more than the maximum of " + most};
  return Error{ErrorCode::limit_reached,
               "the rings of this user's topics would be " + std::to_string(own + settings.ring_bytes) +
                   " bytes, and the last eighth of " + most + " is reserved for users with less"};
}

void TopicQuota::coming(const std::string& name, std::uint64_t maker) {
  coming_.insert(name);
  if (maker != 0) topics_.add(maker);
}

void TopicQuota::came(const std::string& name, std::uint64_t maker) {
  coming_.erase(name);
  if (maker != 0) topics_.give_back(maker);
}

void TopicQuota::made(const TopicDefinition& topic, std::uint64_t maker) {
  if (maker == 0) return;
  const auto& settings = topic.settings;
  const Made made{maker, has_ring(settings.broker_type) ? settings.ring_bytes : 0};
  made_.emplace(topic.id.value, made);
  topics_.add(maker);
  rings_.add(maker, made.ring_bytes);
}

void TopicQuota::gone(TopicId topic) {
  const auto found = made_.extract(topic.value);
  if (found.empty()) return;
  topics_.give_back(found.mapped().maker);
  rings_.give_back(found.mapped().maker, found.mapped().ring_bytes);
}

}  // namespace lightq::broker
