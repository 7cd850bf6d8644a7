/// Decides whether a user may create another topic. Layer: control.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include <lightq/base/error.hpp>
#include <lightq/protocol/control.hpp>

#include "admission/quota.hpp"
#include "control/catalogue/catalogue.hpp"
#include "control/commands/operation_settings.hpp"

namespace lightq::broker {

/// Enforces the limits of topics and of their rings, and each user's share of them. `maker` is the user that
/// creates the topic; 0: an administrator. Topics from before the broker's start, and those of
/// administrators, count for no user. The objections count in LimitCounts. Thread: the control thread.
/// Lifetime: the references must outlive it.
class TopicQuota {
 public:
  TopicQuota(const Catalogue& catalogue, const OperationSettings& settings)
      : catalogue_(catalogue), settings_(settings) {}

  /// Returns the reason why the maker may not create another topic; nothing if it may.
  [[nodiscard]] std::optional<Error> objection_to_maker(std::uint64_t maker) const;
  /// Returns the reason why no topic can have such a ring; nothing if one can.
  [[nodiscard]] std::optional<Error> objection_to_ring(const protocol::TopicSettings& settings) const;
  /// Returns the reason why there is no memory for another ring; nothing if there is.
  [[nodiscard]] std::optional<Error> objection_to_memory(const protocol::TopicSettings& settings,
                                                         std::uint64_t maker) const;

  /// Returns true if a topic of this name is being created and is not in the catalogue yet.
  [[nodiscard]] bool is_coming(const std::string& name) const { return coming_.contains(name); }
  /// Reserves the name, so that of two clients that create it at the same time one succeeds.
  void coming(const std::string& name, std::uint64_t maker);
  /// Ends the reservation: the topic is in the catalogue next, or its creation has failed.
  void came(const std::string& name, std::uint64_t maker);
  /// Counts a topic that is in the catalogue now.
  void made(const TopicDefinition& topic, std::uint64_t maker);
  /// Stops counting a topic that was removed.
  void gone(TopicId topic);

 private:
  const Catalogue& catalogue_;
  const OperationSettings& settings_;
  struct Made {
    std::uint64_t maker = 0;
    std::uint64_t ring_bytes = 0;  // the maximum size of its ring; 0: it has none
  };
  std::unordered_set<std::string> coming_;
  std::unordered_map<std::uint64_t, Made> made_;  // by topic, those that users have created since the start
  Quota<std::uint64_t> topics_;                   // by maker: those of made_, and those being created
  Quota<std::uint64_t> rings_;                    // by maker: the bytes of their rings
};

}  // namespace lightq::broker
