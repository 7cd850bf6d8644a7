/// The operations that read statistics. Layer: control.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include <lightq/protocol/control.hpp>

#include "base/log_sink.hpp"
#include "control/catalogue/catalogue.hpp"
#include "control/commands/data_plane.hpp"
#include "control/commands/done.hpp"
#include "control/commands/operation_settings.hpp"
#include "control/commands/ready_topics.hpp"

namespace lightq::broker {

/// Counts of checked passwords since the broker's start.
struct LoginCounts {
  std::uint64_t failures = 0;   ///< refused credentials
  std::uint64_t throttled = 0;  ///< not checked, because too many were waiting
};

/// Reads the statistics of a topic and of the broker. The asker's permission was checked before each call.
/// Thread: the control thread. Lifetime: the parts must outlive it.
class StatsOperations {
 public:
  struct Parts {
    const Catalogue& catalogue;
    DataPlane& data_plane;
    const LogSink& sink;
    const ReadyTopics& ready;
    const OperationSettings& settings;
    std::function<LoginCounts()> logins;
  };

  explicit StatsOperations(Parts parts)
      : parts_(std::move(parts)), since_ms_(parts_.settings.now().us / 1000) {}

  /// Errors: those of ReadyTopics::find and the data plane.
  void topic(const TopicName& name, const Done<protocol::TopicStats>& done);
  /// Returns the data plane's sums and the control layer's own counts. Errors: those of the data plane.
  void broker(const Done<protocol::BrokerStats>& done);

 private:
  const Parts parts_;
  const std::int64_t since_ms_;
};

}  // namespace lightq::broker
