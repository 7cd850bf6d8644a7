/// Checks that suite `log` detects faults. Layer: bench.
#pragma once

namespace lightq::bench {

/// Runs every part on a very small scale, with deliberate faults that must be detected. Prints undetected
/// faults on standard error. Returns true if there were none.
bool self_check_log();

}  // namespace lightq::bench
