/// What the programs of all suites share: their command line, their parts, and writing what came out.
/// Layer: bench support.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "support/report.hpp"

namespace lightq::bench {

/// Which parts of a suite are to be measured; none named: all.
class SuiteParts {
 public:
  explicit SuiteParts(std::vector<std::string> known) : known_(std::move(known)) {}
  [[nodiscard]] bool wants(const std::string& part) const;
  /// False: there is no such part.
  bool add(std::string part);

 private:
  std::vector<std::string> known_;
  std::vector<std::string> wanted_;
};

/// Flags, and what takes their values: false for a bad one.
struct SuiteArguments {
  std::map<std::string, std::function<void()>, std::less<>> flags = {};
  std::map<std::string, std::function<bool(const std::string&)>, std::less<>> values = {};

  void flag(const std::string& name, bool& to);
  void text(const std::string& name, std::string& to);
  /// A whole number.
  void number(const std::string& name, std::uint64_t& to);
  void parts(SuiteParts& to);  ///< `--part`, any number of times
};

struct SuiteProgram {
  const char* usage;
  SuiteArguments arguments;  ///< besides --json, --markdown and --self-check
  std::function<Report()> measure;
  std::function<bool()> self_check = {};  ///< of `--self-check`; empty: there is none
};

/// The body of main: reads the command line, measures, prints and writes the report. Answers the exit code: 0
/// whatever the figures are, 1 if something could not run or came out wrong, 2 for bad usage.
int run_suite(SuiteProgram program, int argument_count, char** arguments);

}  // namespace lightq::bench
