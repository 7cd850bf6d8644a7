/// Parses a suite's command line, runs the suite and writes its report. Layer: bench support.
#include "support/suite_program.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <exception>
#include <utility>

#include "support/child_process.hpp"

namespace lightq::bench {
namespace {

constexpr int exit_failed = 1;
constexpr int exit_usage = 2;

/// Parses the command line. Returns false on bad usage.
bool read(const SuiteArguments& known, int count, char** arguments) {
  for (int i = 1; i < count; ++i) {
    const std::string_view name = arguments[i];
    if (const auto flag = known.flags.find(name); flag != known.flags.end()) {
      flag->second();
      continue;
    }
    const auto value = known.values.find(name);
    if (value == known.values.end() || ++i == count || !value->second(arguments[i])) return false;
  }
  return true;
}

bool write(const std::string& path, const std::string& text) {
  if (path.empty()) return true;
  const Result<void> written = write_file(path, text);
  if (!written) std::fprintf(stderr, "%s\n", written.error().text().c_str());
  return written.ok();
}

}  // namespace

bool SuiteParts::wants(const std::string& part) const {
  return wanted_.empty() || std::find(wanted_.begin(), wanted_.end(), part) != wanted_.end();
}

bool SuiteParts::add(std::string part) {
  if (std::find(known_.begin(), known_.end(), part) == known_.end()) return false;
  wanted_.push_back(std::move(part));
  return true;
}

void SuiteArguments::flag(const std::string& name, bool& to) {
  flags[name] = [&to] { to = true; };
}

void SuiteArguments::text(const std::string& name, std::string& to) {
  values[name] = [&to](const std::string& given) {
    to = given;
    return true;
  };
}

void SuiteArguments::number(const std::string& name, std::uint64_t& to) {
  values[name] = [&to](const std::string& given) {
    const char* const end = given.data() + given.size();
    const auto [last, error] = std::from_chars(given.data(), end, to);
    return error == std::errc() && last == end;
  };
}

void SuiteArguments::parts(SuiteParts& to) {
  values["--part"] = [&to](const std::string& given) { return to.add(given); };
}

int run_suite(SuiteProgram program, int argument_count, char** arguments) {
  std::string json_path;
  std::string markdown_path;
  bool self_check = false;
  program.arguments.text("--json", json_path);
  program.arguments.text("--markdown", markdown_path);
  if (program.self_check) program.arguments.flag("--self-check", self_check);
  if (!read(program.arguments, argument_count, arguments)) {
    std::fputs(program.usage, stderr);
    return exit_usage;
  }
  try {
    stop_on_signals();
    if (self_check) return program.self_check() ? 0 : exit_failed;
    const Report report = program.measure();
    std::fputs(render_text(report).c_str(), stdout);
    const bool json_written = write(json_path, render_json(report));
    const bool markdown_written = write(markdown_path, render_markdown(report));
    const bool all_well = json_written && markdown_written && report.failures.empty() && !stop_requested();
    return all_well ? 0 : exit_failed;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s: %s\n", arguments[0], problem.what());
    return exit_failed;
  }
}

}  // namespace lightq::bench
