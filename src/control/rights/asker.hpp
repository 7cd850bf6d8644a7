/// The client that asks for an operation, as the permission checks found it. Layer: control.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "access/ticket.hpp"

namespace lightq::broker {

/// Identifies the asker of an operation, without its password. Permissions creates it. Plain data.
struct Asker {
  enum class Kind {
    anonymous,      ///< an unauthenticated client of an open topic
    administrator,  ///< the administrator of the broker's configuration
    user,           ///< a user of the catalogue, perhaps with the rights of an administrator
    topic_user,     ///< a topic's own user; `holder.user` is the id of its credential
  };

  Kind kind = Kind::anonymous;
  TicketHolder holder;      ///< the holder that the asker's tickets name
  std::string source = {};  ///< where the request came from: RequestSource::key

  [[nodiscard]] bool is_administrator() const { return kind == Kind::administrator; }
  /// Returns the number under which requests of the asker are counted: AskerId.
  [[nodiscard]] std::optional<std::uint64_t> id() const {
    return kind == Kind::anonymous ? std::nullopt : std::optional(holder.user);
  }
  /// Returns the key by which several askers of one source take turns.
  [[nodiscard]] std::string turn_key() const { return std::to_string(holder.user); }
};

}  // namespace lightq::broker
