/// The tickets that a session has shown, and the users that it counts for. Layer: session.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include <lightq/protocol/session_link.hpp>

#include "access/group_scope.hpp"
#include "session/session_host.hpp"
#include "session/session_permits.hpp"

namespace lightq::broker {

/// Asks the server about each ticket that the client shows, and tells which topics the session may use. The
/// first ticket admits the session. SessionConnection owns it; the session's parts ask it. Thread: the
/// reactor's.
class SessionTickets {
 public:
  /// The reason why a ticket is not accepted.
  struct Refusal {
    session::Code code = session::Code::ok;  ///< ok: it is accepted
    std::string why;
  };

  /// Lifetime: `host` outlives it.
  explicit SessionTickets(SessionHost& host) : host_(host) {}

  /// Takes the first ticket, which admits the session.
  Refusal show_first(std::string_view ticket);
  /// Takes another ticket. Requires: the session is admitted.
  Refusal show_another(std::string_view ticket);
  [[nodiscard]] bool is_admitted() const { return is_admitted_; }
  /// Returns true if the session was refused because its ticket was not valid.
  [[nodiscard]] bool is_refused() const { return is_refused_; }
  /// Returns the users whose tickets the session has shown. Empty if these are the administrator's only.
  [[nodiscard]] const std::set<std::uint64_t>& users() const { return users_; }
  /// Returns the user for whom shared resources count; 0: no particular user.
  [[nodiscard]] std::uint64_t first_user() const { return users_.empty() ? 0 : *users_.begin(); }

  /// Returns the topic if a ticket permits the role on the groups in `scope`, else null. Sets `user` to the
  /// user that the use counts for (TicketHolder::sharer).
  [[nodiscard]] TopicRuntime* permitted(const std::string& topic, EndpointRole role, const GroupScope& scope,
                                        std::uint64_t* user = nullptr) const;
  /// Returns true if the holder of one of the tickets may manage the topic's groups in `scope`.
  [[nodiscard]] bool may_manage(const TopicRuntime& topic, const GroupScope& scope) const;
  [[nodiscard]] bool has_ticket_for(TopicId topic) const;
  /// Returns the topic, or null if it no longer exists.
  [[nodiscard]] TopicRuntime* find_topic(TopicId topic) const { return host_.find_topic(topic); }
  /// Removes tickets that permit nothing any more. Returns true if that leaves none.
  bool drop_invalid();
  void limit_reached(Limit limit) const { host_.limit_reached(limit); }

 private:
  Refusal make_room_for_another();
  std::string_view admit_also(std::uint64_t user);

  SessionHost& host_;
  SessionPermits permits_;
  std::set<std::uint64_t> users_;
  bool is_admitted_ = false;
  bool is_refused_ = false;
};

}  // namespace lightq::broker
