/// Threads that no signal comes to. Layer: endpoint.
#pragma once

#include <signal.h>

namespace lightq::broker {

/// Holds back all signals of the calling thread while it lives, and of threads that are made meanwhile for
/// good: signals are for the threads that expect them.
class WithoutSignals {
 public:
  WithoutSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;
  ~WithoutSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace lightq::broker
