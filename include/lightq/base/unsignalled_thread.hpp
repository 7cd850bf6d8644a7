/// Starts threads that take no signals meant for the program's own threads. Layer: base.
#pragma once

#include <csignal>
#include <thread>
#include <utility>

namespace lightq::inline v1 {

/// Starts a thread that blocks all signals. So they go to the program's other threads, which may block or
/// expect them. The thread only receives signals for its own faults (SIGSEGV, SIGBUS …). Throws as
/// std::thread does.
template <typename Body>
std::thread start_unsignalled(Body&& body) {
  /// Blocks all signals but those for faults in the calling thread while this object lives. The new thread
  /// inherits this mask.
  class Mask {
   public:
    Mask() {
      sigset_t all;
      sigfillset(&all);
      for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&all, fault);
      pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    Mask(const Mask&) = delete;
    Mask& operator=(const Mask&) = delete;
    ~Mask() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

   private:
    sigset_t before_{};
  };
  const Mask mask;
  return std::thread(std::forward<Body>(body));
}

}  // namespace lightq::inline v1
