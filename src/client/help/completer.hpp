/// Completes a command line, for the shells. Layer: cli.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "client/help/command_entry.hpp"

namespace lightq::cli {

/// Things with names: those that only the broker knows, and contexts.
enum class NameKind { topics, groups, users, schedules, contexts };

/// The words that may follow on the command line.
struct Completions {
  /// A word that fits, and its meaning.
  struct Word {
    std::string text;
    std::string help;
  };
  std::vector<Word> words;
  bool files = false;  ///< the shell shall complete file names
};

/// Returns names of this kind; none if the broker does not answer. `topic`: of groups, and of schedules if it
/// is known; else empty.
using NameSource = std::function<std::vector<std::string>(NameKind kind, const std::string& topic)>;

/// Returns the words that may replace the last of `typed`, which is empty or only begun. `typed` excludes the
/// program's name. Asks `names` only where a name may stand. Leaves out names that a shell could take for
/// more than a word.
Completions complete(const CommandEntry& program, std::vector<std::string> typed, const NameSource& names);

/// Returns the values of flags that are on the command line, by the flags' names: for `--broker URI` and
/// `--broker=URI`.
std::vector<std::pair<std::string, std::string>> typed_values(const CommandEntry& program,
                                                              std::vector<std::string> typed);

}  // namespace lightq::cli
