/// Checks that the benchmark detects faults. Layer: bench.
#pragma once

namespace lightq::bench {

/// Sends short streams with one fault each, which the consumer must name. Checks the statistics, the rows and
/// that no child process remains. Prints the faults that it finds. Returns true if there are none. Takes
/// about a second.
bool self_check();

}  // namespace lightq::bench
