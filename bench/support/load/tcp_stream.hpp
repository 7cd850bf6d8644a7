/// The speed of a wire without a broker: bytes over one connection, and messages through a relay of bytes.
/// Layer: bench support.
#pragma once

#include "support/stream_run.hpp"

namespace lightq::bench {

/// Sends bytes over one TCP connection on 127.0.0.1 from process to process, 256 KiB per send, without
/// processing them. The result counts messages of plan.message_bytes. Errors: as run_stream.
Result<StreamResult> run_tcp_stream(const StreamPlan& plan);

/// The wire between the processes of a relay.
enum class RelayWire { tcp, unix_socket };

/// Sends the plan's bytes in pieces of a producer's batch (64 KiB) through a process that forwards them
/// unread. The result is the upper bound for a broker over this wire, in messages of plan.message_bytes.
/// Errors: as run_stream.
Result<StreamResult> run_batch_relay(const StreamPlan& plan, RelayWire wire);

/// Runs a paced plan over two TCP connections through a process that forwards all bytes: one send per
/// message, TCP_NODELAY everywhere. Errors: as run_stream.
Result<StreamResult> run_tcp_relay(const StreamPlan& plan);

}  // namespace lightq::bench
