/// Whether what a log's directory says of a topic's producers is sound. Changes nothing, so it may be
/// somebody else's log. Layer: log.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "log/finding.hpp"
#include "log/storage.hpp"

namespace lightq::log {

/// What was found of `producers.0` and `producers.1`.
struct ProducerSurvey {
  std::size_t producers = 0;         ///< in the file that counts
  std::optional<Error> newer;        ///< a newer version wrote one of the files
  std::optional<Error> unavailable;  ///< they cannot be looked at now, sound as they may be (is_shortage)
  std::optional<Error> lost;         ///< there are files, and none is sound
  std::vector<std::string> unsound;  ///< names that a broker would not believe; there may be no such file
  std::vector<Finding> findings;     ///< all of that, in words
};

/// What looks damaged is looked at again, for somebody may be writing.
ProducerSurvey survey_producers(const std::string& directory, Storage& storage);

}  // namespace lightq::log
