/// The calls that a session makes on its server. Layer: session.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "access/group_scope.hpp"
#include "admission/limit_counts.hpp"
#include "net/turn_queue.hpp"
#include "session/session_permits.hpp"
#include "session/session_settings.hpp"
#include "topic/runtime/topic_runtime.hpp"

namespace lightq::broker {

class SessionConnection;

/// Checks the tickets and finds the topics of sessions. SessionServer implements it, and so do test programs.
/// Thread: the reactor's.
class SessionHost {
 public:
  using Permit = SessionPermit;
  virtual ~SessionHost() = default;
  /// Returns the ticket's permit, or nothing if the ticket is not or no longer valid.
  virtual std::optional<Permit> permit_of(std::string_view ticket) = 0;
  /// Returns true if the permit is still valid for its topic, which is `topic`, and for the groups in
  /// `scope`.
  [[nodiscard]] virtual bool is_good(const Permit& permit, const TopicRuntime& topic,
                                     const GroupScope& scope) const = 0;
  /// Returns true if the permit's holder may manage the topic's groups in `scope`.
  [[nodiscard]] virtual bool may_manage(const Permit& /*permit*/, const TopicRuntime& /*topic*/,
                                        const GroupScope& /*scope*/) const {
    return false;
  }
  /// Returns the topic's name, or an empty string if the topic does not or no longer exist.
  virtual std::string topic_name(TopicId topic) {
    const TopicRuntime* const found = find_topic(topic);
    return found == nullptr ? std::string() : std::string(found->definition().name.text());
  }
  /// Returns the topic, or null if it does not or no longer exist.
  virtual TopicRuntime* find_topic(TopicId topic) = 0;
  /// Admits one more connection of the user until the session ends, and returns an empty text. Otherwise
  /// returns the reason for the refusal.
  virtual std::string_view admit(std::uint64_t /*user*/) { return {}; }
  /// Counts an admitted session for this user too, which may be its first, and returns an empty text.
  /// Otherwise returns the reason for the refusal.
  virtual std::string_view admit_also(std::uint64_t /*user*/) { return {}; }
  virtual void limit_reached(Limit /*limit*/) {}
  /// Returns the queue that all sessions of the reactor share; null means that no session waits for a turn.
  virtual TurnQueue* turns() { return nullptr; }
  virtual void session_opened(SessionConnection& session) = 0;
  [[nodiscard]] virtual std::uint64_t message_bytes_max() const = 0;
  [[nodiscard]] virtual const SessionSettings& session_settings() const = 0;
};

}  // namespace lightq::broker
