/// The owners of a topic's producers and cursors. Layer: topic.
#pragma once

#include <cstdint>

#include <lightq/base/types.hpp>

#include "access/access_table.hpp"
#include "admission/fair_share.hpp"

namespace lightq::broker {

/// Names the owner under which a topic keeps the producers and cursors of a user. TopicRuntime owns it;
/// publishing and consumers call it. Thread: the reactor's.
class StateOwners {
 public:
  /// Lifetime: `access` outlives this.
  StateOwners(const AccessTable& access, TopicId topic) : access_(access), topic_(topic) {}

  /// Returns the owner under which producers and cursors of `user` are kept. The topic's own user gets
  /// another id with each password, but keeps its producers and cursors.
  [[nodiscard]] std::uint64_t owner_for(std::uint64_t user) const {
    return access_.is_topics_own(user, topic_) ? topics_own_user : user;
  }
  /// Returns true if the owner of a cursor was deleted. Any user may then take the cursor over.
  [[nodiscard]] bool is_gone(std::uint64_t owner) const {
    if (owner == 0 || owner == FairShare::anonymous) return false;
    if (owner == topics_own_user) return !access_.has_own_user(topic_);
    return !access_.has_user(owner);
  }

 private:
  // The topic's own user as the owner of cursors, and in the producers' file.
  static constexpr std::uint64_t topics_own_user = FairShare::anonymous - 1;

  const AccessTable& access_;
  const TopicId topic_;
};

}  // namespace lightq::broker
