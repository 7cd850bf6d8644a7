/// A table with aligned columns and a heading. Layer: cli.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace lightq::cli {

/// Collects rows of cells, and aligns them when all are known. Columns of words begin at the left, columns of
/// numbers end at the right.
class TextTable {
 public:
  /// A column's heading, and its alignment.
  struct Column {
    std::string heading;
    bool is_number = false;
  };
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}
  /// Adds a row. Escapes control characters, so that a cell cannot look like two, or like another row.
  /// Requires: a cell for each column.
  void add(const std::vector<std::string>& cells);
  [[nodiscard]] bool is_empty() const { return rows_.empty(); }
  /// Returns the heading and the rows, each with a line end and without spaces before it.
  [[nodiscard]] std::string text() const;
  /// Returns the rows without the heading, with a tab between two cells.
  [[nodiscard]] std::string tab_separated() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace lightq::cli
