/// The rules that the settings of a recurring schedule keep. Layer: recurring.
#pragma once

#include <string_view>

#include <lightq/base/result.hpp>
#include <lightq/protocol/control.hpp>
#include <lightq/protocol/schedules.hpp>

namespace lightq::broker {

/// The beginning of the names of headers that mean something to LightQ. Schedules may not set them.
inline constexpr std::string_view reserved_header_prefix = "lightq-";

/// Checks the name of a schedule: the ids of its messages contain it. Errors: too_large.
Result<void> check_schedule_name(std::string_view name);
/// Checks the settings of a schedule for a topic of this type. Errors: invalid_request (the cron rule, the
/// zone, a header), not_supported (`direct` topics; `once` for a topic in memory; no time zone data),
/// too_large.
Result<void> check_schedule(const protocol::ScheduleSettings& settings, protocol::BrokerType type);

}  // namespace lightq::broker
