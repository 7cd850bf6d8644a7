/// Describes the machine on which a benchmark ran. Layer: bench support.
#pragma once

#include <string>

namespace lightq::bench {

/// Returns processor, cores, memory, kernel and libzmq version. Omits parts that cannot be determined.
std::string machine_description();
/// Returns today's date, UTC, as 2026-01-31.
std::string today();

}  // namespace lightq::bench
