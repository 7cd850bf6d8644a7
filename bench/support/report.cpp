/// Formats results as text, Markdown and JSON. Layer: bench support.
#include "support/report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/posix.hpp"

namespace lightq::bench {
namespace {

/// Returns the columns of a text on a terminal. UTF-8 continuation bytes take none.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string verdict_of(const Row& row) {
  if (!row.judged()) return "";
  if (row.ratio.median >= row.goal) return "goal met";
  return row.ratio.median >= row.floor ? "floor holds" : "BELOW FLOOR";
}

/// Returns the judged rows as a table, or the others under a separate caption.
Table table_of(const std::vector<Row>& rows, bool judged) {
  Table table;
  table.caption = judged ? "Against the goals (ratio: higher is better)" : "For information";
  table.heads = {"what", "unit", "LightQ", "reference", "ratio"};
  if (judged) table.heads.insert(table.heads.end(), {"goal", "floor", ""});
  for (const Row& row : rows) {
    if (row.judged() != judged) continue;
    std::vector<std::string> cells = {row.title, row.unit, format_summary(row.ours),
                                      format_summary(row.reference) + ", " + row.reference_name,
                                      format_summary(row.ratio)};
    if (judged) {
      cells.insert(cells.end(), {format_number(row.goal), format_number(row.floor), verdict_of(row)});
    }
    table.cells.push_back(std::move(cells));
  }
  return table;
}

std::vector<Table> all_tables(const Report& report) {
  std::vector<Table> tables = report.tables;
  for (const bool judged : {true, false}) {
    Table table = table_of(report.rows, judged);
    if (!table.cells.empty()) tables.push_back(std::move(table));
  }
  return tables;
}

std::vector<std::size_t> column_widths(const Table& table) {
  std::vector<std::size_t> widths;
  for (std::size_t column = 0; column < table.heads.size(); ++column) {
    std::size_t width = width_of(table.heads[column]);
    for (const auto& cells : table.cells) width = std::max(width, width_of(cells[column]));
    widths.push_back(width);
  }
  return widths;
}

std::string text_line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t column = 0; column < cells.size(); ++column) {
    line += cells[column] + std::string(widths[column] - width_of(cells[column]) + 2, ' ');
  }
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

std::string markdown_line(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) line += " " + cell + " |";
  return line + "\n";
}

}  // namespace

Row compare(std::string name, std::string title, std::string unit, Better better,
            const std::vector<double>& ours, std::string reference_name,
            const std::vector<double>& reference) {
  Row row;
  row.name = std::move(name);
  row.title = std::move(title);
  row.unit = std::move(unit);
  row.reference_name = std::move(reference_name);
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(ours.size(), reference.size()); ++i) {
    const double above = better == Better::more ? ours[i] : reference[i];
    const double below = better == Better::more ? reference[i] : ours[i];
    if (below > 0) ratios.push_back(above / below);
  }
  row.rounds = static_cast<int>(ratios.size());
  row.ours = summarize(ours);
  row.reference = summarize(reference);
  row.ratio = summarize(std::move(ratios));
  return row;
}

std::string format_number(double value) {
  const double size = std::fabs(value);
  const int digits = size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 || size == 0 ? 2 : 3;
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string format_summary(const Summary& summary) {
  const std::string median = format_number(summary.median);
  if (summary.min == summary.max) return median;
  return median + " (" + format_number(summary.min) + "–" + format_number(summary.max) + ")";
}

std::string render_text(const Report& report) {
  std::string text;
  for (const std::string& note : report.notes) text += note + "\n";
  for (const Table& table : all_tables(report)) {
    const std::vector<std::size_t> widths = column_widths(table);
    text += "\n" + table.caption + "\n" + text_line(table.heads, widths);
    for (const auto& cells : table.cells) text += text_line(cells, widths);
  }
  for (const std::string& failure_text : report.failures) text += "\nFAILED: " + failure_text + "\n";
  return text;
}

std::string render_markdown(const Report& report) {
  std::string text;
  for (const std::string& note : report.notes) text += "- " + note + "\n";
  for (const Table& table : all_tables(report)) {
    text += "\n**" + table.caption + "**\n\n" + markdown_line(table.heads);
    text += markdown_line(std::vector<std::string>(table.heads.size(), "---"));
    for (const auto& cells : table.cells) text += markdown_line(cells);
  }
  for (const std::string& failure_text : report.failures) text += "\nFailed: " + failure_text + "\n";
  return text;
}

std::string render_json(const Report& report) {
  if (!report.json.empty()) return report.json;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Row& row : report.rows) {
    rows.push_back({{"name", row.name},
                    {"ours", row.ours.median},
                    {"reference", row.reference.median},
                    {"ratio", row.ratio.median},
                    {"goal", row.goal},
                    {"floor", row.floor},
                    {"unit", row.unit},
                    {"reference_name", row.reference_name},
                    {"informative", !row.judged()},
                    {"ours_min", row.ours.min},
                    {"ours_max", row.ours.max},
                    {"reference_min", row.reference.min},
                    {"reference_max", row.reference.max},
                    {"ratio_min", row.ratio.min},
                    {"ratio_max", row.ratio.max},
                    {"rounds", row.rounds},
                    {"suite", report.suite},
                    {"quick", report.quick}});
  }
  return rows.dump(2) + "\n";
}

Result<void> write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::trunc);
  file << text;
  file.close();
  if (!file) return system_error("cannot write " + path);
  return {};
}

}  // namespace lightq::bench
