/// The operations that read statistics. Layer: control.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lightq/protocol/control.hpp>

#include "base/log_sink.hpp"
#include "control/catalogue/catalogue.hpp"
#include "control/commands/data_plane.hpp"
#include "control/commands/done.hpp"
#include "control/commands/operation_settings.hpp"
#include "control/commands/ready_topics.hpp"
#include "control/rights/asker.hpp"
#include "control/rights/asker_rights.hpp"

namespace lightq::broker {

/// Counts of checked passwords since the broker's start.
struct LoginCounts {
  std::uint64_t failures = 0;   ///< refused credentials
  std::uint64_t throttled = 0;  ///< not checked, because too many were waiting
};

/// A range of all topics, by name. Without limits it has all topics.
struct TopicsWanted {
  std::optional<TopicName> after = {};  ///< the range begins with the first name behind this one
  std::size_t topics_max = std::numeric_limits<std::size_t>::max();
  /// The range ends after the topic that reaches this number of entries (see entries_of).
  std::size_t entries_max = std::numeric_limits<std::size_t>::max();
  std::string pattern = {};       ///< leaves out topics with names that do not fit it; empty: none
  bool with_connections = false;  ///< see TopicsAsked
};

/// The statistics of a range of topics.
struct StatsPage {
  std::vector<protocol::TopicStats> topics;  ///< ordered by name
  std::string continue_after;  ///< the name to continue behind; empty: there is no further topic
  /// The work of finding the topics, as the length of a reply that takes as long to write.
  std::uint64_t work_bytes = 0;
  ConnectionsRefused connections = {};
};

/// Reads the statistics of topics and of the broker. The asker's permission was checked before each call.
/// Thread: the control thread. Lifetime: the parts must outlive it.
class StatsOperations {
 public:
  struct Parts {
    const Catalogue& catalogue;
    DataPlane& data_plane;
    const LogSink& sink;
    const ReadyTopics& ready;
    const AskerRights& rights;
    const OperationSettings& settings;
    std::function<LoginCounts()> logins;
  };

  explicit StatsOperations(Parts parts)
      : parts_(std::move(parts)), since_ms_(parts_.settings.now().us / 1000) {}

  /// `members_max`: the most members of groups in the answer. Only an asker that may manage the topic gets
  /// the names of their users. Errors: those of ReadyTopics::find and the data plane.
  void topic(const Asker& asker, const TopicName& name, std::uint64_t members_max,
             const Done<protocol::TopicStats>& done);
  /// Returns the statistics of the topics on which the asker has any right; an administrator has them on all.
  /// Leaves out topics that are starting or could not start. Asks each thread of the data plane once. Errors:
  /// those of the data plane.
  void topics(const Asker& asker, const TopicsWanted& wanted, const Done<StatsPage>& done);
  /// Returns the data plane's sums and the control layer's own counts. Errors: those of the data plane.
  void broker(const Done<protocol::BrokerStats>& done);
  /// Returns true if the asker is the administrator, or still a user with the same password.
  [[nodiscard]] bool knows(const Asker& asker) const {
    return asker.is_administrator() || parts_.rights.user_of(asker) != nullptr;
  }
  /// Returns true if the asker may see the statistics of the broker.
  [[nodiscard]] bool describes_broker_to(const Asker& asker) const { return parts_.rights.is_admin(asker); }
  /// Adds the control layer's own counts to what the data plane has counted.
  void add_own(protocol::BrokerStats& stats) const;

 private:
  void name_members(protocol::TopicStats& stats) const;

  const Parts parts_;
  const std::int64_t since_ms_;
};

}  // namespace lightq::broker
