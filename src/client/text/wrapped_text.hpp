/// Fits text to the width of a terminal. Layer: cli.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lightq::cli {

/// Returns how many columns the text takes on a terminal: two for a wide character, and none for a mark that
/// joins the character before. Requires: no control characters. A byte that is not UTF-8 counts as one
/// column.
std::size_t columns_of(std::string_view text);

/// Returns the text, or as much of its begin as leaves room for a tilde in `columns` columns.
std::string cut_to(std::string_view text, std::size_t columns);

/// Returns the width for text on standard output: that of the terminal, else the variable COLUMNS, else 80.
/// At least 40, and at most 120, because longer lines are hard to read.
std::size_t output_columns();

/// Returns the words of `text` in lines of at most `columns` columns. Each line after the first begins with
/// `indent` spaces; `used` columns of the first line are taken already. Splits no word: a longer word has a
/// line of its own. The result does not end with a line end.
std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent = 0, std::size_t used = 0);

/// Returns a shell command that begins with spaces in lines of at most `columns` columns. The shell joins
/// the lines again, because each but the last ends with a backslash. A comment moves to a line before.
std::string wrapped_command(std::string_view line, std::size_t columns);

/// Returns paragraphs, which empty lines separate. Joins and wraps their lines, except lines that begin with
/// two spaces, which are commands.
std::string wrapped_paragraphs(std::string_view text, std::size_t columns);

}  // namespace lightq::cli
