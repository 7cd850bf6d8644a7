/// Sets and lists recurring schedules: messages that the broker publishes again and again. Layer: client.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <lightq/base/result.hpp>
#include <lightq/base/separate.hpp>
#include <lightq/base/types.hpp>
#include <lightq/protocol/schedules.hpp>

namespace lightq::inline v1 {

class Client;
struct ClientState;

using protocol::MissedFirings;
using protocol::ScheduleHeader;
using protocol::ScheduleListing;
using protocol::SchedulePage;
using protocol::ScheduleSettings;

/// Requests about the recurring schedules of a topic. The client may be destroyed before it. Every request
/// needs the right to manage the topic; `set` also that to produce to it. Errors of all: those of Client's
/// requests, topic_not_found, schedule_not_found. docs/protocol.md, "set_schedule".
///
///     ScheduleControl schedules = ScheduleControl::of(client, "reports").value_or_throw();
///     schedules.set("morning", {.cron = "0 9 * * MON-FRI", .zone = "Europe/Berlin", .payload = "go"});
///
/// Without a topic only `list` is possible. It lists the schedules of all topics that the user may manage.
class ScheduleControl {
 public:
  /// Makes an object for the schedules of a topic. With an empty name it lists those of all topics. Errors:
  /// invalid_request (a name that no topic can have).
  static Result<ScheduleControl> of(const Client& client, std::string_view topic = {});

  /// Sets a schedule, or replaces the one of this name. A replaced schedule stays paused if it is, and does
  /// not fire again for times before now. Errors: invalid_request (the rule, the zone, a name),
  /// not_supported (`direct`; `once` for a topic in memory), too_large, limit_reached.
  Result<void> set(std::string_view name, const ScheduleSettings& settings);
  /// Returns schedules by topic and name, without their payloads: at most `limit` (1 to 1,000), behind the
  /// page that ended with `after`.
  Result<SchedulePage> list(std::string_view after = {},
                            std::uint64_t limit = SchedulePage::schedules_default);
  /// Returns a schedule with its payload and its next `times` times (0 to 100).
  Result<ScheduleListing> show(std::string_view name, std::uint64_t times = 1);
  /// Stops a schedule until `resume`. Times until then are left out.
  Result<void> pause(std::string_view name);
  Result<void> resume(std::string_view name);
  /// Removes a schedule. Messages that it has published stay.
  Result<void> remove(std::string_view name);

 private:
  ScheduleControl(std::shared_ptr<ClientState> state, std::optional<TopicName> topic)
      : state_(std::move(state)), topic_(std::move(topic)) {}
  template <typename Asked>
  Result<void> act(std::string_view name);

  std::shared_ptr<ClientState> state_;
  std::optional<TopicName> topic_;
};

}  // namespace lightq::inline v1

#if defined(LIGHTQ_WITH_DEFINITIONS)
#include <lightq/impl/group_control.hpp>  // IWYU pragma: export
#endif
