/// Threads that take no signal in the place of the program's own. Layer: base.
#pragma once

#include <csignal>
#include <thread>
#include <utility>

#include <lightq/base/wipe_registers.hpp>

namespace lightq::inline v1 {

/// Starts a thread that blocks all signals: they are for the program's other threads, which may block or
/// expect them. Only those for faults of the thread itself (SIGSEGV, SIGBUS …) come. The thread begins with a
/// copy of the calling thread's registers, in which no secret is left. Throws as std::thread.
template <typename Body>
std::thread start_unsignalled(Body&& body) {
  /// What the calling thread blocks, which the new one begins with.
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
  wipe_registers();
  return std::thread(std::forward<Body>(body));
}

}  // namespace lightq::inline v1
