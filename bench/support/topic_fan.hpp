/// Many topics over one connection: a frame of one message to each in turn. Layer: bench support.
#pragma once

#include <string>
#include <vector>

#include "support/stream_run.hpp"

namespace lightq::bench {

/// Topics of one broker, joined by a producer and by a consumer.
struct TopicFan {
  struct Topic {
    std::string name;
    std::string producer_ticket;  ///< as `hello` and `present` show it
    std::string consumer_ticket;
  };
  std::string uri;  ///< of the Unix socket that sessions come to
  std::vector<Topic> topics;
};

/// Sends the plan's messages over one session, the first to the first topic, the next to the next, and so on;
/// another session takes and acknowledges them, both in memory that the broker shares. Each is a `produce`
/// frame of its own, and a `deliver` frame. Every topic's messages have to come once, unharmed and in order,
/// and to be confirmed. Written from docs/session.md, without the client library's producers: these have a
/// connection each. Errors: as run_stream.
Result<StreamResult> run_topic_fan(const TopicFan& fan, const StreamPlan& plan);

}  // namespace lightq::bench
