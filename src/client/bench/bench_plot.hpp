/// Draws the latencies of a benchmark as an SVG image. Layer: cli.
#pragma once

#include <string>
#include <vector>

#include "client/bench/bench_row.hpp"

namespace lightq::cli {

/// Returns an SVG document: a line for each row over the percentiles, with logarithmic seconds, and a legend.
/// Texts are escaped. Rows without latencies are left out.
std::string bench_plot(const std::vector<BenchResult>& results);

/// Returns the text with the characters escaped that have a meaning in XML; control characters become spaces.
std::string xml_escaped(std::string_view text);

}  // namespace lightq::cli
