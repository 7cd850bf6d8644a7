/// What a wire gives without a broker: bytes over one connection, and messages through a relay of bytes.
/// Layer: bench support.
#pragma once

#include "support/stream_run.hpp"

namespace lightq::bench {

/// One TCP connection on 127.0.0.1 from process to process, sends of 256 KiB, nothing done with the bytes.
/// The result's messages are of plan.message_bytes. Errors: as run_stream.
Result<StreamResult> run_tcp_stream(const StreamPlan& plan);

/// What connects the processes of a relay.
enum class RelayWire { tcp, unix_socket };

/// The plan's bytes in pieces of a producer's batch (64 KiB) from process to process, by one in between that
/// passes on what it receives and looks at nothing: what a broker could do at most over this wire. The
/// result's messages are of plan.message_bytes. Errors: as run_stream.
Result<StreamResult> run_batch_relay(const StreamPlan& plan, RelayWire wire);

/// A paced plan over two TCP connections with a process in between that passes on what it receives: each
/// message a send, TCP_NODELAY everywhere. Errors: as run_stream.
Result<StreamResult> run_tcp_relay(const StreamPlan& plan);

}  // namespace lightq::bench
