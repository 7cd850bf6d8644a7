/// Why a client's consumer or producer is refused or ended. Layer: delivery.
#pragma once

#include <cstdint>

namespace lightq::broker {

/// The reasons for which a topic refuses or ends a consumer or a producer. A session translates them into the
/// codes of its protocol.
enum class ClientError : std::uint8_t {
  none,
  invalid_name,         ///< of a group
  unauthorized_access,  ///< the cursor belongs to another user
  not_supported,        ///< the group has another mode
  limit_reached,
  fenced,            ///< another client has taken the producer id or the cursor over
  unknown_producer,  ///< the producer id is not known, or belongs to another client
  incarnation_changed,
  no_space,  ///< the disk is full
  io_error,
  topic_deleted,
  shutting_down,
};

}  // namespace lightq::broker
