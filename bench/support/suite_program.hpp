/// The common code of all suites' programs: command line, parts, and writing the report. Layer: bench
/// support.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "support/report.hpp"

namespace lightq::bench {

/// The parts of a suite to measure. All, if none is named.
class SuiteParts {
 public:
  explicit SuiteParts(std::vector<std::string> known) : known_(std::move(known)) {}
  [[nodiscard]] bool wants(const std::string& part) const;
  /// Returns false if there is no such part.
  bool add(std::string part);

 private:
  std::vector<std::string> known_;
  std::vector<std::string> wanted_;
};

/// The flags, and the parsers of their values. A parser returns false for a bad value.
struct SuiteArguments {
  std::map<std::string, std::function<void()>, std::less<>> flags = {};
  std::map<std::string, std::function<bool(const std::string&)>, std::less<>> values = {};

  void flag(const std::string& name, bool& to);
  void text(const std::string& name, std::string& to);
  /// Adds an option with a whole number.
  void number(const std::string& name, std::uint64_t& to);
  /// Adds `--part`, which may be repeated.
  void parts(SuiteParts& to);
};

struct SuiteProgram {
  const char* usage;
  SuiteArguments arguments;  ///< besides --json, --markdown and --self-check
  std::function<Report()> measure;
  std::function<bool()> self_check = {};  ///< for `--self-check`; empty: there is none
};

/// The body of main: reads the command line, measures, prints and writes the report. Returns the exit code: 0
/// for any figures, 1 if something failed or gave wrong results, 2 for bad usage.
int run_suite(SuiteProgram program, int argument_count, char** arguments);

}  // namespace lightq::bench
