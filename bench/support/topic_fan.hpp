/// Many topics over one connection, with one message per frame, to each topic in turn. Layer: bench support.
#pragma once

#include <string>
#include <vector>

#include "support/stream_run.hpp"

namespace lightq::bench {

/// Topics of one broker, joined by a producer and by a consumer.
struct TopicFan {
  struct Topic {
    std::string name;
    std::string producer_ticket;  ///< the ticket for `hello` and `present`
    std::string consumer_ticket;
  };
  std::string uri;  ///< the Unix socket for sessions
  std::vector<Topic> topics;
};

/// Sends the plan's messages over one session to the topics in turn. Another session receives and
/// acknowledges them. Both sessions use memory shared with the broker. Each message is one `produce` frame
/// and one `deliver` frame. Checks that every topic's messages arrive once, unaltered and in order, and are
/// confirmed. Implements docs/session.md directly, because each producer of the client library has its own
/// connection. Errors: as run_stream.
Result<StreamResult> run_topic_fan(const TopicFan& fan, const StreamPlan& plan);

}  // namespace lightq::bench
