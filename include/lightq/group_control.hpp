/// Changes the settings of a consumer group, and acts on its dead messages. Layer: client.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <lightq/base/result.hpp>
#include <lightq/base/separate.hpp>
#include <lightq/base/types.hpp>
#include <lightq/protocol/group_control.hpp>

namespace lightq::inline v1 {

struct ClientState;

using protocol::DeadCause;
using protocol::DeadCount;
using protocol::DeadFilter;
using protocol::DeadMessage;
using protocol::DeadPage;
using protocol::DeadState;
using protocol::GroupChange;
using protocol::GroupMove;
using protocol::GroupPlace;
using protocol::GroupSettings;
using protocol::ReturnedLetters;

/// Requests about one group of a topic. Client::group makes it, and may be destroyed before it. Every request
/// needs the right to manage the topic or the group. Errors of all: those of Client's requests,
/// group_not_found. docs/protocol.md, "set_group" and "list_dead".
///
///     GroupControl billing = client.group("orders", "billing").value_or_throw();
///     billing.set({.max_attempts = 5, .backoff_ms = {{1000, 10'000, 60'000}}}).value_or_throw();
///     for (const DeadMessage& dead : billing.list_dead().value_or_throw().messages) print(dead.reason);
///     billing.retry_dead({.cause = DeadCause::rejected}).value_or_throw();  // the fault was found
///
/// With an empty name of the group the topic is a dead-letter topic, and the dead messages are the letters in
/// it. `set` is not possible then. `retry_dead` gives a letter back to the group in which it died, and also
/// needs the right to manage the topic in which that was: DeadCount::returned. `purge_dead` takes letters off
/// the list; consumers of the topic receive them still.
///
///     GroupControl letters = client.group("orders.dead", "").value_or_throw();
///     letters.retry_dead().value_or_throw().returned->given_back;
class GroupControl {
 public:
  GroupControl(std::shared_ptr<ClientState> state, TopicName topic, std::string group)
      : state_(std::move(state)), topic_(std::move(topic)), group_(std::move(group)) {}

  /// Changes the given settings. The group need not exist: it has them when it is created. Errors:
  /// invalid_request, unauthorized_access, topic_not_found (also for the dead-letter topic), limit_reached.
  Result<void> set(const GroupChange& change);
  /// Moves the group to a place, also while consumers are connected: messages that they have are taken back
  /// from them. Dead messages and those that wait for a retry are ordinary messages again. Returns the
  /// effect.
  Result<GroupMove> seek(const GroupPlace& to);
  /// Returns the effect that `seek` would have now.
  Result<GroupMove> preview_seek(const GroupPlace& to);
  /// Returns dead messages in ascending order of their offsets: at most `limit` (1 to 1,000), behind offset
  /// `after`.
  Result<DeadPage> list_dead(const DeadFilter& filter = {}, std::optional<std::uint64_t> after = {},
                             std::uint64_t limit = DeadPage::messages_default);
  /// Makes parked messages ready again, as if they had never failed. Returns their number. With a key the
  /// broker reads each message: if there are very many, the timeout of a request may be too short.
  Result<DeadCount> retry_dead(const DeadFilter& filter = {});
  /// Gives parked messages up: the group is done with them. Returns their number.
  Result<DeadCount> purge_dead(const DeadFilter& filter = {});
  /// Returns how many messages retry_dead, or purge_dead, would mean now.
  Result<DeadCount> count_to_retry(const DeadFilter& filter = {});
  Result<DeadCount> count_to_purge(const DeadFilter& filter = {});

 private:
  Result<GroupMove> seek(const GroupPlace& to, bool preview);
  template <typename Asked>
  Result<DeadCount> act(const DeadFilter& filter, bool preview);

  std::shared_ptr<ClientState> state_;
  TopicName topic_;
  std::string group_;
};

}  // namespace lightq::inline v1

#if defined(LIGHTQ_WITH_DEFINITIONS)
#include <lightq/impl/group_control.hpp>  // IWYU pragma: export
#endif
