/// Which groups of a topic a question about rights is about. docs/protocol.md, "Users". Layer: endpoint.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <lightq/protocol/control.hpp>
#include <lightq/protocol/topic_pattern.hpp>

#include "broker/endpoint/endpoint_record.hpp"

namespace lightq::broker {

/// A right on `TOPIC` fits every scope; one on `TOPIC:GROUP` fits the groups that its second part stands for.
/// A consumer's own cursor counts as a group of its name. One without a name, and reading by offset, have the
/// empty name, which only stars stand for.
class GroupScope {
 public:
  /// The topic as a whole: a right on some of its groups does not do.
  static GroupScope whole_topic() { return {Kind::whole_topic, {}}; }
  /// At least one group, whichever: which one is asked later.
  static GroupScope some_group() { return {Kind::some_group, {}}; }
  /// One group or cursor.
  static GroupScope of(std::string_view name) { return {Kind::one_group, std::string(name)}; }
  /// What consumers of a plain endpoint of this role have: the default group, or no name.
  static GroupScope of_plain(EndpointRole role) {
    if (role == EndpointRole::produce) return whole_topic();
    return of(role == EndpointRole::pull ? protocol::default_group : std::string_view());
  }

  /// The name of the one group; empty: it has none, or the question is about more.
  [[nodiscard]] const std::string& group() const { return name_; }
  /// `pattern`: the second part of a right's, if it has one.
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
