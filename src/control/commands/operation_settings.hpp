/// The settings of the broker's operations. Layer: control.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include <lightq/base/limits.hpp>
#include <lightq/base/types.hpp>

#include "access/client_keys.hpp"
#include "admission/limit_counts.hpp"
#include "control/templates/topic_templates.hpp"

namespace lightq::broker {

/// The limits of what operations create, which can change while the broker runs. OperationSettings has the
/// same fields.
struct CreationLimits {
  std::size_t topics_max = limits::topics_max;
  std::size_t users_max = limits::users_max;
  std::size_t rights_per_user_max = limits::rights_per_user_max;
  std::uint64_t ring_bytes_max = limits::ring_bytes_max;
  std::uint64_t memory_bytes_max = 0;
};

struct OperationSettings {
  std::string data_dir;  ///< as stats report it
  std::function<Timestamp()> now;
  std::size_t topics_max = limits::topics_max;
  std::size_t users_max = limits::users_max;
  std::size_t rights_per_user_max = limits::rights_per_user_max;
  std::uint64_t ring_bytes_max = limits::ring_bytes_max;                ///< per topic
  std::uint64_t memory_bytes_max = 0;                                   ///< for all rings; 0: unlimited
  std::size_t groups_per_topic_max = limits::groups_per_topic_max;      ///< with settings
  std::uint64_t redelivery_ms_max = limits::redelivery_ms_max_default;  ///< of a back-off
  bool open_topics = false;  ///< every topic accepts plain clients without a ticket
  /// Returns the number of requests that the control socket refused because their source asked too much.
  std::function<std::uint64_t()> throttled = [] { return std::uint64_t{0}; };
  std::string server_key = {};            ///< Z85, sent in replies to join; empty: no encryption
  ClientKeys* client_keys = nullptr;      ///< registered at a join, with server_key; outlives the operations
  bool insecure = false;                  ///< as stats report it
  LimitCounts* limits_reached = nullptr;  ///< null: not counted; outlives the operations
  /// Returns the number of connections that the control socket evicted.
  std::function<std::uint64_t()> evicted = [] { return std::uint64_t{0}; };
  TopicTemplates templates = {};
};

}  // namespace lightq::broker
