/// Spans of the wall clock, which may be set back. Layer: log.
#pragma once

#include <cstdint>

#include <lightq/base/types.hpp>

namespace lightq::log {

/// True if `us` microseconds have passed since `since`. A time that is still to come shows that the clock was
/// set back: nobody knows how long ago that was, and nothing is to stand still for it, so that is true, too.
inline bool has_passed(Timestamp since, std::int64_t us, Timestamp now) {
  return now < since || now.us - since.us >= us;
}

}  // namespace lightq::log
