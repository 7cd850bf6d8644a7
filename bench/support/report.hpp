/// What a benchmark suite hands over: rows that compare LightQ with a reference, and tables for people.
/// Layer: bench support.
#pragma once

#include <string>
#include <vector>

#include <lightq/base/result.hpp>

#include "support/statistics.hpp"

namespace lightq::bench {

/// LightQ against a reference, both measured in the same rounds of the same run.
struct Row {
  std::string name;            ///< for programs, e.g. `queue_throughput_100`
  std::string title;           ///< for people
  std::string unit;            ///< of `ours` and `reference`
  std::string reference_name;  ///< what LightQ is compared with
  Summary ours;
  Summary reference;
  Summary ratio;  ///< of the pairs, round by round; higher is better
  int rounds = 0;
  double goal = 0;   ///< ratio that we want; 0 for a row that only informs
  double floor = 0;  ///< ratio that must hold on a bad day; 0 likewise
  [[nodiscard]] bool judged() const { return goal > 0; }
};

/// Whether more or less of a row's unit is better; ratios are turned so that more is.
enum class Better { more, less };

/// A row without goal and floor. `ours` and `reference` hold one value per round; pairs are taken in order.
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
  std::vector<std::string> notes;     ///< machine, versions, what a run was; one sentence each
  std::vector<Table> tables;          ///< what was measured
  std::vector<Row> rows;              ///< what follows from it
  std::vector<std::string> failures;  ///< what could not run or came out wrong
};

/// A number with a sensible count of digits: three significant ones below 100, none behind the point above.
std::string format_number(double value);
/// `median (min–max)`, or the median alone where all are equal.
std::string format_summary(const Summary& summary);

/// Plain text for a terminal.
std::string render_text(const Report& report);
/// GitHub Markdown, without a heading.
std::string render_markdown(const Report& report);
/// An array of rows: name, ours, reference, ratio, goal, floor, then units, spreads and names.
std::string render_json(const Report& report);

/// Writes a whole file. Error: the path and why.
Result<void> write_file(const std::string& path, const std::string& text);

}  // namespace lightq::bench
