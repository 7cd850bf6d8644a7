/// One sentence about the machine that a benchmark ran on. Layer: bench support.
#pragma once

#include <string>

namespace lightq::bench {

/// Processor, cores, memory, kernel, libzmq; parts that cannot be found out are left out.
std::string machine_description();
/// Today's date, UTC, as 2026-01-31.
std::string today();

}  // namespace lightq::bench
