/// Checks that suite `delivery` detects faults. Layer: bench.
#pragma once

namespace lightq::bench {

/// Makes mistakes on purpose that the suite must detect, and computes rows with known figures. Prints
/// undetected mistakes on standard error. Returns true if there were none. Starts no broker.
bool self_check_delivery();

}  // namespace lightq::bench
