/// Reads a TOML text into plain values with their places. Layer: broker.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <lightq/base/result.hpp>

namespace lightq::broker {

/// A place in a file, from 1.
struct TomlPlace {
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

/// A key of a TOML file with its value.
struct TomlValue {
  enum class Kind { text, number, boolean, table, other };

  std::string name;
  Kind kind = Kind::other;
  std::string text;                ///< the value of a text, a whole number or a boolean
  TomlPlace key;                   ///< of the name
  TomlPlace value;                 ///< of the value
  std::vector<TomlValue> members;  ///< of a table, in the order of the file
};

/// Parses a TOML text. Returns the keys of its top level in the order of the file. Tables that are nested
/// deeper than three levels have no members here. `name` is the file's name in errors. Errors:
/// invalid_argument, with line and column.
Result<std::vector<TomlValue>> parse_toml(std::string_view text, const std::string& name);

/// Returns `FILE:LINE:COLUMN: `, the beginning of an error.
std::string text_of_place(const std::string& file, TomlPlace place);

}  // namespace lightq::broker
