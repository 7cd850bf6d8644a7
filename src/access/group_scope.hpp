/// The groups of a topic that a check of rights is about. docs/protocol.md, "Users". Layer: access.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <lightq/protocol/control.hpp>
#include <lightq/protocol/topic_pattern.hpp>

#include "access/endpoint_role.hpp"

namespace lightq::broker {

/// The part of a topic to which a right must extend. A right on `TOPIC` fits every scope. A right on
/// `TOPIC:GROUP` fits the groups that match its second part. A consumer's own cursor counts as a group of its
/// name. A cursor without a name, and reading by offset, have the empty name, which only stars match.
class GroupScope {
 public:
  /// The whole topic. A right on some of its groups is not enough.
  static GroupScope whole_topic() { return {Kind::whole_topic, {}}; }
  /// At least one group, no matter which: the group itself is checked later.
  static GroupScope some_group() { return {Kind::some_group, {}}; }
  /// One group or cursor.
  static GroupScope of(std::string_view name) { return {Kind::one_group, std::string(name)}; }
  /// The group of consumers of a plain endpoint of this role: the default group for `pull`, the empty name
  /// for `sub`. For `produce`: the whole topic.
  static GroupScope of_plain(EndpointRole role) {
    if (role == EndpointRole::produce) return whole_topic();
    return of(role == EndpointRole::pull ? protocol::default_group : std::string_view());
  }

  /// Returns the name of the one group. Empty: it has none, or the scope is not one group.
  [[nodiscard]] const std::string& group() const { return name_; }
  /// Returns true if a right with this second part fits the scope. Nothing: the right has no second part.
  [[nodiscard]] bool fits(std::optional<std::string_view> pattern) const {
    if (!pattern || kind_ == Kind::some_group) return true;
    return kind_ == Kind::one_group && protocol::fits_pattern(name_, *pattern);
  }

 private:
  enum class Kind { whole_topic, some_group, one_group };
  GroupScope(Kind kind, std::string name) : kind_(kind), name_(std::move(name)) {}

  Kind kind_;
  std::string name_;
};

}  // namespace lightq::broker
