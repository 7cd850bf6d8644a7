/// Shows that the checks of suite `peers` can fail. Layer: bench peers.
#pragma once

namespace lightq::bench {

/// Runs the work against a server in shared memory that makes one mistake at a time. Prints the results.
/// Returns true if each mistake was reported, and work without one passes.
bool self_check_peers();

}  // namespace lightq::bench
