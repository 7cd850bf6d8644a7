/// A read-only survey of a topic's producer files. It changes nothing, so another process may have the log
/// open. Layer: tools.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "log/storage/storage.hpp"
#include "log/tools/finding.hpp"

namespace lightq::log {

/// The state of `producers.0` and `producers.1`.
struct ProducerSurvey {
  std::size_t producers = 0;         ///< number in the file that counts
  std::optional<Error> newer;        ///< set if a newer version wrote one of the files
  std::optional<Error> unavailable;  ///< set if they, perhaps sound, cannot be read now (is_shortage)
  std::optional<Error> lost;         ///< set if there are files and none is sound
  std::vector<std::string> unsound;  ///< names that a broker would reject; the files need not exist
  std::vector<Finding> findings;     ///< all of that, in words
};

/// Surveys the producer files in `directory`. Reads up to three times if something looks damaged, because
/// another process may be writing.
ProducerSurvey survey_producers(const std::string& directory, Storage& storage);

}  // namespace lightq::log
