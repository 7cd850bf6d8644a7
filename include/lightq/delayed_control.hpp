/// Lists, cancels and reschedules the delayed messages of a topic. Layer: client.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include <lightq/base/result.hpp>
#include <lightq/base/separate.hpp>
#include <lightq/base/types.hpp>
#include <lightq/protocol/delayed_control.hpp>

namespace lightq::inline v1 {

struct ClientState;

using protocol::DelayedCount;
using protocol::DelayedFilter;
using protocol::DelayedMessage;
using protocol::DelayedPage;
using protocol::DelayedPlace;
using protocol::DelayedRefusal;
using protocol::DelayedState;
using protocol::DelayedStats;
using protocol::UntouchedDelayed;

/// Requests about the schedule of one topic. Client::delayed makes it, and may be destroyed before it. Every
/// request needs the right to manage the topic. Errors of all: those of Client's requests, topic_not_found,
/// not_supported (a topic of type `direct`). docs/protocol.md, "list_delayed".
///
///     DelayedControl reminders = client.delayed("reminders").value_or_throw();
///     for (const DelayedMessage& message : reminders.list().value_or_throw().messages) print(message.due);
///     reminders.cancel({.id = "order 7"}).value_or_throw();  // it was paid
///
/// A filter means all waiting messages that have the properties it names; without any, all of them. The
/// requests that change something are durable when they return. A message that is on its way to the topic's
/// log already is not changed: DelayedCount::too_late.
class DelayedControl {
 public:
  DelayedControl(std::shared_ptr<ClientState> state, TopicName topic)
      : state_(std::move(state)), topic_(std::move(topic)) {}

  /// Returns delayed messages by their due time, then by number: at most `limit` (1 to 1,000), behind
  /// `after`. If the filter has numbers: by number. `payload_bytes`: also returns so many of the first bytes
  /// of each payload (at most DelayedPage::payload_bytes_max), which needs the right to consume from the
  /// topic. An older broker returns none.
  Result<DelayedPage> list(const DelayedFilter& filter = {}, std::optional<DelayedPlace> after = {},
                           std::uint64_t limit = DelayedPage::messages_default,
                           std::uint64_t payload_bytes = 0);
  /// Removes messages: they are never delivered.
  Result<DelayedCount> cancel(const DelayedFilter& filter);
  /// Makes messages due now.
  Result<DelayedCount> hurry(const DelayedFilter& filter);
  /// Gives messages another due time: at most ten years ahead. A past time is now. Errors also:
  /// invalid_request.
  Result<DelayedCount> reschedule(const DelayedFilter& filter, Timestamp deliver_at);
  /// Makes messages due after `delay`, counted from now.
  Result<DelayedCount> reschedule(const DelayedFilter& filter, std::chrono::microseconds delay);
  /// Returns how many messages cancel, hurry and reschedule would change now.
  Result<DelayedCount> count(const DelayedFilter& filter);

 private:
  template <typename Asked>
  Result<DelayedCount> act(Asked asked);

  std::shared_ptr<ClientState> state_;
  TopicName topic_;
};

}  // namespace lightq::inline v1

#if defined(LIGHTQ_WITH_DEFINITIONS)
#include <lightq/impl/control/delayed_control.hpp>  // IWYU pragma: export
#endif
