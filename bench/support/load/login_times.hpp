/// Measures how long the broker takes to check credentials. Layer: bench support.
#pragma once

#include <lightq/base/result.hpp>

namespace lightq::bench {

struct LoginTimes {
  double first_us = 0;      ///< time for a correct password that was not checked before
  double again_p50_us = 0;  ///< time for a password that was checked before
  double again_p99_us = 0;
};

/// Calls the broker's authenticator directly in a separate process: once, and then `count` times.
Result<LoginTimes> measure_logins(int count);

}  // namespace lightq::bench
