/// Many producers and many consumers of one group on one topic, each in a separate process. Layer: bench
/// support.
#pragma once

#include "support/session_stream.hpp"

namespace lightq::bench {

/// Runs the plan once. Each producer sends an equal part; each message is delivered to one consumer. Checks
/// that every message arrives exactly once and unaltered, and that each consumer receives each producer's
/// messages in order. Errors: as run_session_stream.
Result<StreamResult> run_session_crowd(const SessionEnds& ends, const StreamPlan& plan, int producers,
                                       int consumers);

}  // namespace lightq::bench
