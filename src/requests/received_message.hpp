/// A message as a single request receives it. Layer: requests.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <lightq/base/types.hpp>

#include "delivery/batches/batch_slice.hpp"

namespace lightq::broker {

/// A copy of a message, with what its consumer has to know. Plain data.
struct ReceivedMessage {
  /// The marks of all messages of a slice.
  struct Marks {
    std::uint32_t delivery = 1;  ///< number of its deliveries, this one included; 0: it was only read
    bool expired = false;        ///< its time to live is over
  };
  Offset offset;
  Marks marks;
  Timestamp stored;  ///< when it was appended
  Timestamp time;    ///< the producer's time; 0: none was given
  std::string key;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string payload;
};

/// Appends copies of the slice's messages. Requires: the slice's batch is not compressed.
void append_copies(const BatchSlice& slice, const ReceivedMessage::Marks& marks,
                   std::vector<ReceivedMessage>& to);

}  // namespace lightq::broker
