/// The state of a recurring schedule at work. Layer: topic.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <lightq/base/types.hpp>

namespace lightq::broker {

/// A plain value.
struct ScheduleState {
  std::string name;
  std::uint64_t fired = 0;        ///< messages published since the start, or since the schedule was changed
  std::optional<Timestamp> last;  ///< the time of the last firing; nothing: it is not known, or there is none
  std::string waiting_by;         ///< why a firing that is due is not published yet; empty: none waits
};

}  // namespace lightq::broker
