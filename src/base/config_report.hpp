/// The broker's configuration as a start would read it, for `lightq broker --print-config`. Layer: base.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <lightq/base/error.hpp>

namespace lightq::broker {

/// One value of the configuration.
struct ConfigValue {
  std::string table = {};                 ///< the pattern of a topic template; empty: a setting of the broker
  std::string name;                       ///< as in the configuration file
  std::optional<std::string> value = {};  ///< nothing: not set, or secret
  bool is_text = false;                   ///< the value is a text in TOML; otherwise a number or a boolean
  bool is_secret = false;                 ///< the value is set, and is not shown
  std::string source;                     ///< `default`, `FILE:LINE`, the variable or the flag
};

/// All values, and all faults that keep the broker from starting with them.
struct ConfigReport {
  std::vector<ConfigValue> values;
  std::vector<Error> faults;
};

}  // namespace lightq::broker
