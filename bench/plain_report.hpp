/// Suite `plain`: turns measurements into rows with goals and floors. Layer: bench.
#pragma once

#include "plain_measure.hpp"
#include "support/report.hpp"

namespace lightq::bench {

/// Returns rows for every comparison with two measured sides, and tables of all measurements.
Report report_plain(const Measurements& measured, const PlainOptions& options);

}  // namespace lightq::bench
