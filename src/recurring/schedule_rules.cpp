/// Checks the settings of recurring schedules. Layer: recurring.
#include "recurring/schedule_rules.hpp"

#include <string>
#include <utility>
#include <vector>

#include <lightq/base/attributes.hpp>
#include <lightq/base/limits.hpp>
#include <lightq/base/ttl.hpp>

#include "recurring/firing_times.hpp"

namespace lightq::broker {

namespace {

Result<void> check_message(const protocol::ScheduleSettings& settings) {
  std::vector<Header> headers;
  bool has_ttl = false;
  for (const auto& [name, value] : settings.headers) {
    const bool is_ttl = name == ttl_header_name;
    if (is_ttl && (std::exchange(has_ttl, true) || !ttl_in(value)))
      return Error{ErrorCode::invalid_request,
                   "headers: " + std::string(ttl_header_name) +
                       " is given once, and is a number of milliseconds from 1 to " +
                       std::to_string(limits::ttl_ms_max)};
    if (!is_ttl && name.starts_with(reserved_header_prefix))
      return Error{ErrorCode::invalid_request,
                   "headers: names that begin with " + std::string(reserved_header_prefix) + " are reserved"};
    headers.push_back({name, value});
  }
  if (headers.size() >= limits::headers_max)
    return Error{ErrorCode::too_large, "headers: at most " + std::to_string(limits::headers_max - 1) +
                                           ", because the broker adds one"};
  return Attributes{.key = settings.key, .headers = headers}.check();
}

}  // namespace

Result<void> check_schedule_name(std::string_view name) {
  const std::size_t around = firing_id("", {}).size();
  if (name.size() + around <= limits::message_id_bytes_max) return {};
  return Error{ErrorCode::too_large, "schedule: a name has at most " +
                                         std::to_string(limits::message_id_bytes_max - around) +
                                         " bytes, because the ids of the messages contain it"};
}

Result<void> check_schedule(const protocol::ScheduleSettings& settings, protocol::BrokerType type) {
  if (type == protocol::BrokerType::direct)
    return Error{ErrorCode::not_supported,
                 "a topic of type direct keeps no messages, so it has no schedules"};
  if (type == protocol::BrokerType::queue && settings.missed == protocol::MissedFirings::once)
    return Error{ErrorCode::not_supported,
                 "missed: once needs a topic on disk (file, queue_file); a topic of type queue does not know "
                 "after a restart which times it has missed"};
  if (const auto times = FiringTimes::of(settings.cron, settings.zone); !times) {
    Error why = times.error();
    if (why.code == ErrorCode::invalid_argument) why.code = ErrorCode::invalid_request;
    return why;
  }
  return check_message(settings);
}

}  // namespace lightq::broker
