/// How long the broker looks at credentials. Layer: bench support.
#pragma once

#include <lightq/base/result.hpp>

namespace lightq::bench {

struct LoginTimes {
  double first_us = 0;      ///< a right password that was not seen before: until its answer
  double again_p50_us = 0;  ///< the same again
  double again_p99_us = 0;
};

/// Asks the broker's authenticator itself, in a process of its own: once, and then `count` times.
Result<LoginTimes> measure_logins(int count);

}  // namespace lightq::bench
