/// Fits text to the width of a terminal. Layer: cli.
#include "client/text/wrapped_text.hpp"

#include <locale.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include <lightq/base/shown_text.hpp>

namespace lightq::cli {
namespace {

constexpr std::size_t narrowest_columns = 40;
constexpr std::size_t widest_columns = 120;
constexpr std::size_t usual_columns = 80;

std::optional<std::size_t> terminal_columns() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* const variable = std::getenv("COLUMNS");
  if (variable == nullptr) return std::nullopt;
  const std::string_view text = variable;
  std::size_t columns = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), columns);
  const bool whole = fault == std::errc() && end == text.data() + text.size();
  return whole ? std::optional(columns) : std::nullopt;
}

/// Returns the first character of a text that is not empty; one byte if it is not UTF-8.
std::string_view first_character(std::string_view text) {
  return text.substr(0, std::max<std::size_t>(lightq::detail::utf8_length(text), 1));
}

/// Returns how many columns a character takes on a terminal: 2 for wide ones, such as Chinese, 0 for those
/// that join the one before.
std::size_t columns_of_character(std::string_view character) {
  if (character.size() == 1) return 1;
  static const locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (utf8 == nullptr) return 1;
  const locale_t before = uselocale(utf8);
  const int columns = ::wcwidth(static_cast<wchar_t>(lightq::detail::code_point(character)));
  uselocale(before);
  return columns < 0 ? 1 : static_cast<std::size_t>(columns);
}

/// Splits at each `separator`.
std::vector<std::string_view> pieces_of(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  while (true) {
    const std::size_t end = text.find(separator);
    pieces.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return pieces;
    text.remove_prefix(end + 1);
  }
}

/// Returns the words of a shell command; a quoted text with spaces is one word.
std::vector<std::string> shell_words(std::string_view line) {
  std::vector<std::string> words(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '\'') quoted = !quoted;
    if (c == ' ' && !quoted) {
      if (!words.back().empty()) words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

/// Joins words to lines.
class LineFiller {
 public:
  /// `line_end`: ends a line and begins the next one, in which the first word stands at column `indent`.
  /// `used`: columns of the first line that are taken.
  LineFiller(std::string lines, std::size_t columns, std::string line_end, std::size_t indent,
             std::size_t used)
      : lines_(std::move(lines)),
        columns_(columns),
        line_end_(std::move(line_end)),
        indent_(indent),
        at_(used) {}

  void add(std::string_view word) {
    const std::size_t width = columns_of(word);
    if (!is_first_ && at_ + 1 + width > columns_) {
      lines_ += line_end_;
      at_ = indent_;
    } else if (!is_first_) {
      lines_ += ' ';
      ++at_;
    }
    lines_ += word;
    at_ += width;
    is_first_ = false;
  }
  [[nodiscard]] std::string take() { return std::move(lines_); }

 private:
  std::string lines_;
  const std::size_t columns_;
  const std::string line_end_;
  const std::size_t indent_;
  std::size_t at_;
  bool is_first_ = true;
};

}  // namespace

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const std::string_view first = first_character(text);
    columns += columns_of_character(first);
    text.remove_prefix(first.size());
  }
  return columns;
}

std::string cut_to(std::string_view text, std::size_t columns) {
  if (columns_of(text) <= columns) return std::string(text);
  std::string cut;
  std::size_t used = 1;  // the tilde
  while (!text.empty()) {
    const std::string_view first = first_character(text);
    used += columns_of_character(first);
    if (used > columns) break;
    cut += first;
    text.remove_prefix(first.size());
  }
  return columns == 0 ? "" : cut + "~";
}

std::size_t output_columns() {
  return std::clamp(terminal_columns().value_or(usual_columns), narrowest_columns, widest_columns);
}

std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent, std::size_t used) {
  LineFiller filler("", columns, "\n" + std::string(indent, ' '), indent, used);
  for (const std::string_view word : pieces_of(text, ' '))
    if (!word.empty()) filler.add(word);
  return filler.take();
}

std::string wrapped_command(std::string_view line, std::size_t columns) {
  if (columns_of(line) <= columns) return std::string(line);
  const std::size_t margin = std::min(line.find_first_not_of(' '), line.size());
  const std::string before(margin, ' ');
  const std::size_t comment = line.find(" # ");
  if (comment != std::string_view::npos) {
    const std::string_view command = line.substr(0, line.find_last_not_of(' ', comment) + 1);
    return before + wrapped(line.substr(comment + 1), columns, margin, margin) + "\n" +
           wrapped_command(command, columns);
  }
  constexpr std::size_t continued = 2;  // the backslash and its space
  LineFiller filler(before, columns - std::min(columns, continued), " \\\n" + before + "    ", margin + 4,
                    margin);
  for (const std::string& word : shell_words(line)) filler.add(word);
  return filler.take();
}

std::string wrapped_paragraphs(std::string_view text, std::size_t columns) {
  std::string result;
  std::string paragraph;  // lines that wait to be wrapped together
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) result += wrapped(paragraph, columns) + "\n";
    paragraph.clear();
  };
  for (const std::string_view line : pieces_of(text, '\n')) {
    if (line.empty() || line.starts_with("  ")) {
      end_paragraph();
      result += line.empty() ? "\n" : wrapped_command(line, columns) + "\n";
    } else {
      paragraph += (paragraph.empty() ? "" : " ") + std::string(line);
    }
  }
  end_paragraph();
  return result;
}

}  // namespace lightq::cli
