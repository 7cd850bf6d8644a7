/// The definitions of <lightq/group_control.hpp>, <lightq/schedule_control.hpp> and
/// <lightq/broker_control.hpp>. Layer: client.
#pragma once

#include <lightq/broker_control.hpp>
#include <lightq/group_control.hpp>
#include <lightq/schedule_control.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <lightq/impl/client_state.hpp>
#include <lightq/protocol/control.hpp>

namespace lightq::inline v1 {

LIGHTQ_INLINE Result<void> GroupControl::set(const GroupChange& change) {
  const auto reply = state_->ask_for<protocol::OkReply>(
      protocol::SetGroup{state_->asker(), topic_, group_, change, state_->asks_as_admin()});
  if (!reply) return reply.error();
  return {};
}

LIGHTQ_INLINE Result<GroupMove> GroupControl::seek(const GroupPlace& to, bool preview) {
  const auto reply = state_->ask_for<protocol::OkReply>(
      protocol::SeekGroup{state_->asker(), topic_, group_, to, preview, state_->asks_as_admin()});
  if (!reply) return reply.error();
  return reply->moved.value_or(GroupMove());
}

LIGHTQ_INLINE Result<GroupMove> GroupControl::seek(const GroupPlace& to) {
  return seek(to, false);
}

LIGHTQ_INLINE Result<GroupMove> GroupControl::preview_seek(const GroupPlace& to) {
  return seek(to, true);
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

namespace detail {
inline Error no_topic_of_schedules() {
  return {ErrorCode::invalid_argument, "without a topic, schedules can only be listed"};
}
}  // namespace detail

LIGHTQ_INLINE Result<ReloadReply> BrokerControl::reload() {
  return state_->ask_for<ReloadReply>(protocol::Reload{state_->manager()});
}

LIGHTQ_INLINE Result<MessageTrace> BrokerControl::trace(std::string_view topic, std::uint64_t offset) {
  Result<TopicName> name = detail::topic_name_of(topic);
  if (!name) return name.error();
  return state_->ask_for<MessageTrace>(
      protocol::Trace{state_->asker(), std::move(*name), offset, state_->asks_as_admin()});
}

LIGHTQ_INLINE Result<CreatedTopic> BrokerControl::create_topic(std::string_view topic,
                                                               const TopicSettings& settings,
                                                               GivenSettings given) {
  Result<TopicName> name = detail::topic_name_of(topic);
  if (!name) return name.error();
  const bool as_admin = !state_->options.admin.user_id.empty();
  auto reply = state_->ask_for<protocol::OkReply>(protocol::CreateTopic{
      state_->manager(), std::move(*name), settings, as_admin ? state_->options.user : Credentials{}, given});
  if (!reply) return reply.error();
  // A broker without topic templates does not return the settings.
  return reply->created.value_or(CreatedTopic{settings});
}

LIGHTQ_INLINE Result<void> ScheduleControl::set(std::string_view name, const ScheduleSettings& settings) {
  if (!topic_) return detail::no_topic_of_schedules();
  const auto reply = state_->ask_for<protocol::OkReply>(
      protocol::SetSchedule{state_->asker(), *topic_, std::string(name), settings, state_->asks_as_admin()});
  if (!reply) return reply.error();
  return {};
}

LIGHTQ_INLINE Result<SchedulePage> ScheduleControl::list(std::string_view after, std::uint64_t limit) {
  return state_->ask_for<SchedulePage>(protocol::ListSchedules{
      state_->asker(), topic_, {}, std::string(after), limit, 1, state_->asks_as_admin()});
}

LIGHTQ_INLINE Result<ScheduleListing> ScheduleControl::show(std::string_view name, std::uint64_t times) {
  if (!topic_) return detail::no_topic_of_schedules();
  auto page = state_->ask_for<SchedulePage>(protocol::ListSchedules{
      state_->asker(), topic_, std::string(name), {}, 1, times, state_->asks_as_admin()});
  if (!page) return page.error();
  if (page->schedules.empty()) return Error{ErrorCode::schedule_not_found, "schedule not found"};
  return std::move(page->schedules.front());
}

template <typename Asked>
Result<void> ScheduleControl::act(std::string_view name) {
  if (!topic_) return detail::no_topic_of_schedules();
  const auto reply = state_->ask_for<protocol::OkReply>(
      Asked{state_->asker(), *topic_, std::string(name), state_->asks_as_admin()});
  if (!reply) return reply.error();
  return {};
}

LIGHTQ_INLINE Result<void> ScheduleControl::pause(std::string_view name) {
  return act<protocol::PauseSchedule>(name);
}

LIGHTQ_INLINE Result<void> ScheduleControl::resume(std::string_view name) {
  return act<protocol::ResumeSchedule>(name);
}

LIGHTQ_INLINE Result<void> ScheduleControl::remove(std::string_view name) {
  return act<protocol::RemoveSchedule>(name);
}

}  // namespace lightq::inline v1
