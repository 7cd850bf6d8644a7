/// Reads the resource usage of a process from /proc. Layer: bench support.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "support/posix.hpp"

namespace lightq::bench {

/// Returns processor seconds, user and system, in steps of the kernel's clock tick (10 ms). Error: no such
/// process.
Result<double> cpu_seconds_of(pid_t process);

/// Returns the resident bytes of the process without mapped files: RssAnon and RssShmem. Error: no such
/// process.
Result<std::uint64_t> own_resident_bytes_of(pid_t process);

/// Returns the resident bytes now: VmRSS, which includes mapped files. Error: no such process.
Result<std::uint64_t> resident_bytes_of(pid_t process);

/// Returns the peak of resident bytes: VmHWM, which includes mapped files. Error: no such process.
Result<std::uint64_t> peak_resident_bytes_of(pid_t process);

}  // namespace lightq::bench
