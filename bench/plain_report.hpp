/// Suite `plain`: from measurements to rows with goals and floors. Layer: bench.
#pragma once

#include "plain_measure.hpp"
#include "support/report.hpp"

namespace lightq::bench {

/// Rows for every comparison whose two sides were measured; tables of all that was measured.
Report report_plain(const Measurements& measured, const PlainOptions& options);

}  // namespace lightq::bench
