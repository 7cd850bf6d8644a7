/// The results of a benchmark suite: rows that compare LightQ with a reference, and tables for readers.
/// Layer: bench support.
#pragma once

#include <string>
#include <vector>

#include <lightq/base/result.hpp>

#include "support/statistics.hpp"

namespace lightq::bench {

/// A comparison of LightQ with a reference, both measured in the same rounds of one run.
struct Row {
  std::string name;            ///< for programs, for example `queue_throughput_100`
  std::string title;           ///< for readers
  std::string unit;            ///< of `ours` and `reference`
  std::string reference_name;  ///< the name of the reference
  Summary ours;
  Summary reference;
  Summary ratio;  ///< ratios of the pairs, round by round; higher is better
  int rounds = 0;
  double goal = 0;   ///< the ratio to reach; 0 for a row that only informs
  double floor = 0;  ///< the ratio that must hold even on a bad day; 0 for a row that only informs
  [[nodiscard]] bool judged() const { return goal > 0; }
};

/// States whether more or less of a row's unit is better. Ratios are computed so that higher is better.
enum class Better { more, less };

/// Returns a row without goal and floor. `ours` and `reference` contain one value per round; pairs are formed
/// in order.
Row compare(std::string name, std::string title, std::string unit, Better better,
            const std::vector<double>& ours, std::string reference_name,
            const std::vector<double>& reference);

/// A table: `cells[i]` has as many entries as `heads`.
struct Table {
  std::string caption;
  std::vector<std::string> heads;
  std::vector<std::vector<std::string>> cells;
};

struct Report {
  std::string suite;
  bool quick = false;
  std::vector<std::string> notes;     ///< machine, versions, description of a run; one sentence each
  std::vector<Table> tables;          ///< the measurements
  std::vector<Row> rows;              ///< comparisons derived from the measurements
  std::vector<std::string> failures;  ///< errors and wrong results
  std::string json = {};              ///< for render_json; empty: it is made from `rows`
};

/// Formats a number: three significant digits below 100, no decimals from 100 on.
std::string format_number(double value);
/// Formats as `median (min–max)`, or the median alone if all values are equal.
std::string format_summary(const Summary& summary);

/// Returns plain text for a terminal.
std::string render_text(const Report& report);
/// Returns GitHub Markdown, without a heading.
std::string render_markdown(const Report& report);
/// Returns an array of rows: name, ours, reference, ratio, goal, floor, then units, spreads and names.
std::string render_json(const Report& report);

/// Writes a whole file. Errors name the path and the reason.
Result<void> write_file(const std::string& path, const std::string& text);

}  // namespace lightq::bench
