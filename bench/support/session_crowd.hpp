/// Many producers and many consumers of one group on one topic, a process each. Layer: bench support.
#pragma once

#include "support/session_stream.hpp"

namespace lightq::bench {

/// Runs the plan once: each producer sends its part, each message goes to one consumer. Every message has to
/// come exactly once and unharmed, and of each producer in its order at each consumer. Errors: as
/// run_session_stream.
Result<StreamResult> run_session_crowd(const SessionEnds& ends, const StreamPlan& plan, int producers,
                                       int consumers);

}  // namespace lightq::bench
