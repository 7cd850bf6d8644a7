/// The definitions of <lightq/delayed_control.hpp>. Layer: client.
#pragma once

#include <lightq/delayed_control.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include <lightq/impl/client_state.hpp>
#include <lightq/protocol/control.hpp>

namespace lightq::inline v1 {

LIGHTQ_INLINE Result<DelayedPage> DelayedControl::list(const DelayedFilter& filter,
                                                       std::optional<DelayedPlace> after, std::uint64_t limit,
                                                       std::uint64_t payload_bytes) {
  return state_->ask_for<DelayedPage>(protocol::ListDelayed{state_->asker(), topic_, filter, after, limit,
                                                            state_->asks_as_admin(), payload_bytes});
}

template <typename Asked>
Result<DelayedCount> DelayedControl::act(Asked asked) {
  asked.user = state_->asker();
  asked.as_admin = state_->asks_as_admin();
  auto reply = state_->ask_for<protocol::OkReply>(protocol::Request(std::move(asked)));
  if (!reply) return reply.error();
  if (reply->delayed) return *std::move(reply->delayed);
  return DelayedCount{.messages = reply->messages.value_or(0)};
}

LIGHTQ_INLINE Result<DelayedCount> DelayedControl::cancel(const DelayedFilter& filter) {
  return act(protocol::CancelDelayed{{}, topic_, filter});
}

LIGHTQ_INLINE Result<DelayedCount> DelayedControl::hurry(const DelayedFilter& filter) {
  return act(protocol::HurryDelayed{{}, topic_, filter});
}

LIGHTQ_INLINE Result<DelayedCount> DelayedControl::reschedule(const DelayedFilter& filter,
                                                              Timestamp deliver_at) {
  if (deliver_at.us < 0) return Error{ErrorCode::invalid_argument, "a message cannot be due before 1970"};
  return act(protocol::RescheduleDelayed{{}, topic_, filter, deliver_at.us});
}

LIGHTQ_INLINE Result<DelayedCount> DelayedControl::reschedule(const DelayedFilter& filter,
                                                              std::chrono::microseconds delay) {
  if (delay.count() < 0) return Error{ErrorCode::invalid_argument, "a delay cannot be negative"};
  return act(protocol::RescheduleDelayed{{}, topic_, filter, -delay.count()});
}

LIGHTQ_INLINE Result<DelayedCount> DelayedControl::count(const DelayedFilter& filter) {
  return act(protocol::CancelDelayed{{}, topic_, filter, true});
}

}  // namespace lightq::inline v1
