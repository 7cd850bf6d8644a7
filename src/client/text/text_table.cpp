/// A table with aligned columns and a heading. Layer: cli.
#include "client/text/text_table.hpp"

#include <algorithm>

#include <lightq/base/shown_text.hpp>

#include "client/text/wrapped_text.hpp"

namespace lightq::cli {

void TextTable::add(const std::vector<std::string>& cells) {
  std::vector<std::string>& row = rows_.emplace_back(cells.size());
  for (std::size_t i = 0; i < cells.size(); ++i) append_escaping_controls(row[i], cells[i]);
}

std::string TextTable::text() const {
  std::vector<std::size_t> widths;
  std::vector<std::string> headings;
  for (const Column& column : columns_) {
    headings.push_back(column.heading);
    widths.push_back(columns_of(column.heading));
  }
  for (const std::vector<std::string>& cells : rows_)
    for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], columns_of(cells.at(i)));
  std::string lines;
  const auto append = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const std::string gap(widths[i] - columns_of(cells.at(i)), ' ');
      line += (i > 0 ? "  " : "") + (columns_[i].is_number ? gap + cells[i] : cells[i] + gap);
    }
    lines += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  };
  append(headings);
  for (const std::vector<std::string>& cells : rows_) append(cells);
  return lines;
}

std::string TextTable::tab_separated() const {
  std::string lines;
  for (const std::vector<std::string>& cells : rows_) {
    for (std::size_t i = 0; i < cells.size(); ++i) lines += (i > 0 ? "\t" : "") + cells[i];
    lines += "\n";
  }
  return lines;
}

}  // namespace lightq::cli
