/// Writes the manual pages of the commands. Layer: cli.
#include "client/help/manual_page.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <sstream>
#include <string_view>

#include <lightq/version.hpp>

#include "client/text/wrapped_text.hpp"

namespace lightq::cli {
namespace {

/// The date of the last change of the layout. Pages of equal programs are equal, so it is not that of today.
constexpr std::string_view page_date = "2026-11-27";
constexpr std::size_t line_columns = 72;

/// Escapes the characters that the formatter takes for commands. Removes spaces that come twice.
std::string escaped(std::string_view text) {
  std::string to;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto byte = static_cast<unsigned char>(c);
    constexpr unsigned char two_bytes = 0xC0;
    constexpr unsigned char three_bytes = 0xE0;
    if (c == '\\') {
      to += "\\e";
    } else if (c == '-') {
      to += "\\-";
    } else if (c == '"') {
      to += "\\(dq";
    } else if (c == '\'') {
      to += "\\(aq";
    } else if (byte >= two_bytes && byte < three_bytes && i + 1 < text.size()) {  // such as µ
      const unsigned code = (byte & 0x1FU) << 6U | (static_cast<unsigned char>(text[++i]) & 0x3FU);
      std::array<char, 16> name{};
      std::snprintf(name.data(), name.size(), "\\[u%04X]", code);
      to += name.data();
    } else {
      to += c;
    }
  }
  return to;
}

/// Returns a text as lines of a page. None of them begins with a command of the formatter.
std::string text_lines(std::string_view text) {
  std::istringstream lines(wrapped(text, line_columns));
  std::string to;
  for (std::string line; std::getline(lines, line);) {
    const bool is_command = line.starts_with('.') || line.starts_with('\'');
    to += (is_command ? "\\&" : "") + escaped(line) + "\n";
  }
  return to;
}

std::string section(const std::string& heading) {
  return ".SH " + heading + "\n";
}

/// Returns a paragraph with a name that stands out.
std::string item(const std::string& name, const std::string& text) {
  return ".TP\n.B " + escaped(name) + "\n" + (text.empty() ? "\\&\n" : text_lines(text));
}

std::string flag_item(const FlagEntry& flag) {
  std::string help = flag.help;
  if (flag.required) help += " (required)";
  if (!flag.variable.empty()) help += "; variable: " + flag.variable;
  return item(shape_of(flag), help);
}

/// Returns paragraphs and commands, which begin with two spaces.
std::string notes_text(std::string_view notes) {
  std::istringstream lines{std::string(notes)};
  std::string to;
  std::string paragraph;
  bool in_commands = false;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) to += ".PP\n" + text_lines(paragraph);
    paragraph.clear();
  };
  const auto set_commands = [&](bool value) {
    if (in_commands != value) to += value ? ".PP\n.nf\n" : ".fi\n";
    in_commands = value;
  };
  for (std::string line; std::getline(lines, line);) {
    const bool is_command = line.starts_with("  ");
    if (is_command || line.empty()) end_paragraph();
    set_commands(is_command);
    if (is_command)
      for (std::istringstream parts(wrapped_command(line, line_columns)); std::getline(parts, line);)
        to += escaped(line) + "\n";
    else if (!line.empty())
      paragraph += (paragraph.empty() ? "" : " ") + line;
  }
  end_paragraph();
  set_commands(false);
  return to;
}

/// Returns a command's usage, arguments, flags and notes. Leaves out the flags of the connection, which
/// lightq(1) describes.
std::string body(const CommandEntry& command) {
  std::string to = ".PP\n.B " + escaped(usage_of(command)) + "\n";
  for (const ArgumentEntry& argument : command.arguments) to += item(argument.value, argument.help);
  for (const std::string& group : flag_groups(command))
    for (const FlagEntry& flag : command.flags)
      if (flag.group == group) to += flag_item(flag);
  if (std::ranges::find(command.flags, connection_group, &FlagEntry::group) != command.flags.end())
    to += ".PP\nThe flags of the connection are in\n.BR lightq (1).\n";
  return to + notes_text(command.notes);
}

std::string upper(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

std::string head(const std::string& name, const std::string& help) {
  return ".TH " + escaped(upper(name)) + " 1 \"" + std::string(page_date) + "\" \"LightQ " +
         std::string(version_text) + "\"\n" + section("NAME") + text_lines(name + " - " + help);
}

void append_with_commands(std::string& to, const CommandEntry& command) {
  for (const CommandEntry& each : command.commands) {
    to += ".SS " + escaped(each.words) + "\n" + text_lines(each.help) + body(each);
    append_with_commands(to, each);
  }
}

std::string page_of(const CommandEntry& command) {
  std::string text = head("lightq-" + command.name(), command.help) + section("SYNOPSIS") + ".B " +
                     escaped(usage_of(command)) + "\n" + section("DESCRIPTION") + text_lines(command.help) +
                     body(command);
  if (!command.commands.empty()) {
    text += section("COMMANDS");
    append_with_commands(text, command);
  }
  return text + section("SEE ALSO") + ".BR lightq (1)\n";
}

/// Returns any command's flags of the connection; they are the same everywhere.
std::vector<FlagEntry> connection_flags(const CommandEntry& program) {
  std::vector<FlagEntry> flags;
  for (const CommandEntry& command : program.commands) {
    std::ranges::copy_if(command.flags, std::back_inserter(flags),
                         [](const FlagEntry& flag) { return flag.group == connection_group; });
    if (!flags.empty()) break;
  }
  return flags;
}

std::string page_of_program(const CommandEntry& program) {
  std::string text = head("lightq", "a message broker and its tools") + section("SYNOPSIS") + ".B " +
                     escaped(usage_of(program)) + "\n" + section("DESCRIPTION") + text_lines(program.help) +
                     notes_text(program.notes);
  for (const std::string& group : command_groups(program)) {
    text += section(upper(group));
    for (const CommandEntry& command : program.commands)
      if (command.group == group)
        text += ".TP\n.BR lightq\\-" + escaped(command.name()) + " (1)\n" + text_lines(command.help);
  }
  text += section("CONNECTION") +
          text_lines("Every command that talks to a broker has the flags that name the broker and the user.");
  for (const FlagEntry& flag : connection_flags(program)) text += flag_item(flag);
  text += section("ENVIRONMENT") +
          text_lines(
              "Each flag has an environment variable, such as LIGHTQ_DATA_DIR for --data-dir. A flag "
              "overrides its variable. LIGHTQ_PASSWORD and LIGHTQ_ADMIN_PASSWORD hold passwords.");
  return text;
}

}  // namespace

std::vector<ManualPage> manual_pages(const CommandEntry& program) {
  std::vector<ManualPage> pages = {{"lightq.1", page_of_program(program)}};
  for (const CommandEntry& command : program.commands)
    pages.push_back({"lightq-" + command.name() + ".1", page_of(command)});
  return pages;
}

}  // namespace lightq::cli
