/// Medians, spreads and percentiles of a few runs. Layer: bench support.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace lightq::bench {

/// The median of some values, and their range.
struct Summary {
  double median = 0;
  double min = 0;
  double max = 0;
};

/// Returns the value below which `fraction` (0…1) of the values lie, nearest rank; 0 for none. Sorts its
/// copy.
inline double percentile(std::vector<double> values, double fraction) {
  if (values.empty()) return 0;
  const auto last = static_cast<double>(values.size() - 1);
  const auto rank = static_cast<std::ptrdiff_t>(std::clamp(fraction, 0.0, 1.0) * last + 0.5);
  std::nth_element(values.begin(), values.begin() + rank, values.end());
  return values[static_cast<std::size_t>(rank)];
}

/// Returns the median (of an even number: the mean of the middle two), minimum and maximum; zeros for none.
inline Summary summarize(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  const double median = values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {median, values.front(), values.back()};
}

}  // namespace lightq::bench
