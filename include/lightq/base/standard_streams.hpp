/// Reserves descriptors 0, 1 and 2 for standard input, output and error. Layer: base.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>

namespace lightq::inline v1 {

/// Opens /dev/null for each standard stream with which the process was not started. Otherwise the next file
/// or socket would get that number, and printed text would go into it. Returns false if that failed.
/// Requires: nothing was opened yet; no other thread runs.
inline bool reserve_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
    if (open("/dev/null", O_RDWR) != stream) return false;
  }
  return true;
}

/// Returns a descriptor of the same open file with a number above those of the standard streams. Closes
/// `descriptor` if the number changes. A library needs this, because it does not know whether the program was
/// started with all standard streams. Errors: returns -1 if `descriptor` is -1, or with errno of fcntl.
/// Thread: any.
inline int above_standard_streams(int descriptor) {
  if (descriptor < 0 || descriptor > STDERR_FILENO) return descriptor;
  const int above = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int number = errno;
  close(descriptor);
  errno = number;
  return above;
}

}  // namespace lightq::inline v1
