/// Whether this process may leave a core dump, which shows all that its memory holds. Layer: base.
#pragma once

#include <sys/prctl.h>
#include <sys/resource.h>

namespace lightq::inline v1 {

/// No core dump, whatever core_pattern says, and no other process of this account may trace this one or read
/// its memory: for who holds secrets. What it starts is not given the right to dump either. Any thread.
inline void forbid_core_dumps() {
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  rlimit limit{};
  if (::getrlimit(RLIMIT_CORE, &limit) != 0) return;
  limit.rlim_cur = 0;
  ::setrlimit(RLIMIT_CORE, &limit);
}

/// Takes that back, for who looks for a bug: as large a dump as the hard limit lets it be. Any thread.
inline void allow_core_dumps() {
  ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  rlimit limit{};
  if (::getrlimit(RLIMIT_CORE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_CORE, &limit);
}

}  // namespace lightq::inline v1
