/// The findings of `lightq doctor`. Layer: cli.
#pragma once

#include <string>
#include <vector>

namespace lightq::cli {

enum class Severity { ok, warning, fault };

/// The result of one check.
struct Finding {
  Severity severity = Severity::ok;
  std::string check;  ///< for example `disk`
  std::string text;
  std::string mend = {};  ///< a command or a setting; empty if all is well
};

using Findings = std::vector<Finding>;

}  // namespace lightq::cli
