/// A message as a single request receives it. Layer: requests.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <lightq/base/types.hpp>

namespace lightq::broker {

/// A copy of a message, with what its consumer has to know. Plain data.
struct ReceivedMessage {
  Offset offset;
  std::uint32_t delivery = 1;  ///< number of its deliveries, this one included
  Timestamp stored;            ///< when it was appended
  Timestamp time;              ///< the producer's time; 0: none was given
  std::string key;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string payload;
};

}  // namespace lightq::broker
