/// What a process has used so far, from /proc. Layer: bench support.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "support/posix.hpp"

namespace lightq::bench {

/// Processor seconds, user and system, in steps of the kernel's clock tick (10 ms). Error: no such process.
Result<double> cpu_seconds_of(pid_t process);

/// Bytes of its own that are resident now: RssAnon and RssShmem, without mapped files. Error: no such
/// process.
Result<std::uint64_t> own_resident_bytes_of(pid_t process);

/// The most bytes that were resident at once: VmHWM, which counts mapped files too. Error: no such process.
Result<std::uint64_t> peak_resident_bytes_of(pid_t process);

}  // namespace lightq::bench
