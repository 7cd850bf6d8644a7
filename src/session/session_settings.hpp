/// The settings that all sessions of a broker share. Layer: session.
#pragma once

#include <cstdint>

#include <lightq/base/limits.hpp>

#include "crypto/tls_context.hpp"
#include "session/memory_budget.hpp"
#include "session/read_queue.hpp"

namespace lightq::broker {

/// Settings that apply to all sessions of a broker.
struct SessionSettings {
  std::uint64_t broker = 0;             ///< identifies this start of the broker
  std::uint32_t heartbeat_ms = 10'000;  ///< how often a client must give a sign of life; 0: never
  std::uint32_t channels_max = limits::session_channels_max;  ///< open at once on a session
  ReadLimits reads = {};
  MemoryBudget* memory = nullptr;   ///< for memory shared with clients; null: none is. Outlives the sessions
  const TlsContext* tls = nullptr;  ///< encrypts TCP sessions; null: unencrypted. Outlives the sessions
};

}  // namespace lightq::broker
