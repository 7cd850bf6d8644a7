/// The definitions of <lightq/group_control.hpp>. Layer: client.
#pragma once

#include <lightq/group_control.hpp>

#include <cstdint>
#include <optional>

#include <lightq/impl/client_state.hpp>
#include <lightq/protocol/control.hpp>

namespace lightq::inline v1 {

LIGHTQ_INLINE Result<void> GroupControl::set(const GroupChange& change) {
  const auto reply = state_->ask_for<protocol::OkReply>(
      protocol::SetGroup{state_->asker(), topic_, group_, change, state_->asks_as_admin()});
  if (!reply) return reply.error();
  return {};
}

LIGHTQ_INLINE Result<DeadPage> GroupControl::list_dead(const DeadFilter& filter,
                                                       std::optional<std::uint64_t> after,
                                                       std::uint64_t limit) {
  return state_->ask_for<DeadPage>(
      protocol::ListDead{state_->asker(), topic_, group_, filter, after, limit, state_->asks_as_admin()});
}

template <typename Asked>
Result<DeadCount> GroupControl::act(const DeadFilter& filter, bool preview) {
  const auto reply = state_->ask_for<protocol::OkReply>(
      Asked{state_->asker(), topic_, group_, filter, preview, state_->asks_as_admin()});
  if (!reply) return reply.error();
  return DeadCount{reply->messages.value_or(0), reply->unreadable, reply->returned};
}

LIGHTQ_INLINE Result<DeadCount> GroupControl::retry_dead(const DeadFilter& filter) {
  return act<protocol::RetryDead>(filter, false);
}

LIGHTQ_INLINE Result<DeadCount> GroupControl::purge_dead(const DeadFilter& filter) {
  return act<protocol::PurgeDead>(filter, false);
}

LIGHTQ_INLINE Result<DeadCount> GroupControl::count_to_retry(const DeadFilter& filter) {
  return act<protocol::RetryDead>(filter, true);
}

LIGHTQ_INLINE Result<DeadCount> GroupControl::count_to_purge(const DeadFilter& filter) {
  return act<protocol::PurgeDead>(filter, true);
}

}  // namespace lightq::inline v1
