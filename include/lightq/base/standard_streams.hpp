/// Keeps descriptors 0, 1 and 2 for standard input, output and error. Layer: base.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>

namespace lightq::inline v1 {

/// Opens /dev/null in place of each standard stream that the process was started without. Otherwise the next
/// file or socket gets that number, and what is printed goes into it. Returns false if that failed. Requires:
/// nothing was opened yet; no other thread runs.
inline bool reserve_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
    if (open("/dev/null", O_RDWR) != stream) return false;
  }
  return true;
}

/// Returns the descriptor of the same open file with a number above those of the standard streams, and closes
/// `descriptor` if that is another one. A library cannot know whether the program was started with all of
/// them. Errors: -1, as -1 is given or with errno of fcntl. Any thread.
inline int above_standard_streams(int descriptor) {
  if (descriptor < 0 || descriptor > STDERR_FILENO) return descriptor;
  const int above = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int number = errno;
  close(descriptor);
  errno = number;
  return above;
}

}  // namespace lightq::inline v1
