/// One measurement: a producer process sends, a consumer process receives and checks. Layer: bench support.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <lightq/base/result.hpp>

namespace lightq::bench {

/// High-water mark of the producer's and the consumer's socket, the same for everything measured.
inline constexpr int client_high_water_messages = 10'000;

/// What a socket shows where it connects; empty: nothing.
struct StreamTicket {
  std::string id;
  std::string secret;
};

/// A socket's keys for CURVE, in Z85; empty: it speaks in clear.
struct StreamKeys {
  std::string server_key;  ///< of the one that binds; empty: it is this one
  std::string public_key;
  std::string secret_key;

  /// For a socket that connects to the one that has the server key; empty: for one that binds.
  static StreamKeys generate(std::string server_key);
};

/// Where producer and consumer connect. With both empty there is nothing in between: the consumer binds, the
/// producer connects to it.
struct StreamEnds {
  std::string producer_uri;
  std::string consumer_uri;
  StreamTicket producer_ticket = {};
  StreamTicket consumer_ticket = {};
  StreamKeys producer_keys = {};
  StreamKeys consumer_keys = {};
};

/// Mistakes that a producer makes on purpose, for the self-check: the consumer must notice each.
enum class Sabotage {
  none,
  damage,     ///< one byte of a message is wrong
  swap,       ///< two messages in the wrong order
  lose,       ///< a message is left out
  repeat,     ///< a message is sent twice
  shorten,    ///< a message lacks its last byte
  stale,      ///< a message belongs to another run
  extra,      ///< one message too many at the end
  end_early,  ///< the last message is left out
  stop,       ///< the producer falls silent in the middle
  crash,      ///< the producer dies in the middle
};

struct StreamPlan {
  std::size_t message_bytes = 100;
  std::uint64_t message_count = 0;  ///< data messages
  double messages_per_second = 0;   ///< 0: as fast as it goes; else paced by the clock, and latency is kept
  std::chrono::milliseconds time_max{30'000};  ///< then everything is killed
  Sabotage sabotage = Sabotage::none;
};

struct StreamResult {
  double seconds = 0;              ///< from the first receive to the last, at the consumer
  double messages_per_second = 0;  ///< messages over those seconds
  std::vector<double> latency_us;  ///< one way, in order of sending, the first tenth left out; only if paced
  double relay_cpu_seconds = 0;    ///< user and system, of the relay; only of run_tcp_relay
};

/// Runs the plan once. Error: something was lost, repeated, reordered or damaged, a process failed, the time
/// ran out, or the producer could not keep the rate. No process is left behind.
Result<StreamResult> run_stream(const StreamEnds& ends, const StreamPlan& plan);

}  // namespace lightq::bench
