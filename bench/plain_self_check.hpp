/// Shows that the benchmark's own checks can fail. Layer: bench.
#pragma once

namespace lightq::bench {

/// Sends short streams with one mistake each and expects the consumer to name it; checks the statistics, the
/// rows and that no child is left. Prints what went wrong; true if all is well. Takes about a second.
bool self_check();

}  // namespace lightq::bench
