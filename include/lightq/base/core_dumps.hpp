/// Forbids or allows core dumps of this process. A core dump shows everything in its memory. Layer: base.
#pragma once

#include <sys/prctl.h>
#include <sys/resource.h>

namespace lightq::inline v1 {

/// Forbids core dumps, for any core_pattern. Keeps other processes of this account from tracing this process
/// or reading its memory. Programs that it starts cannot dump either. For processes with secrets. Thread:
/// any.
inline void forbid_core_dumps() {
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  rlimit limit{};
  if (::getrlimit(RLIMIT_CORE, &limit) != 0) return;
  limit.rlim_cur = 0;
  ::setrlimit(RLIMIT_CORE, &limit);
}

/// Allows core dumps again, up to the hard limit, to find a bug. Thread: any.
inline void allow_core_dumps() {
  ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  rlimit limit{};
  if (::getrlimit(RLIMIT_CORE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_CORE, &limit);
}

}  // namespace lightq::inline v1
