/// The lock of an object that one thread uses. Layer: admission.
#pragma once

namespace lightq::broker {

/// Locks nothing. `Quota` and `TokenBucket` take a mutex type: this one, or std::mutex if several threads use
/// the object.
struct NoMutex {
  void lock() {}
  void unlock() {}
};

}  // namespace lightq::broker
