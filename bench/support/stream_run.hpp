/// One measurement: a producer process sends, a consumer process receives and checks. Layer: bench support.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <lightq/base/result.hpp>

namespace lightq::bench {

/// The high-water mark of the producer's and the consumer's socket, the same in every measurement.
inline constexpr int client_high_water_messages = 10'000;

/// A socket's ticket for the endpoint to which it connects; empty: none.
struct StreamTicket {
  std::string id;
  std::string secret;
};

/// A socket's CURVE keys in Z85; empty: no encryption.
struct StreamKeys {
  std::string server_key;  ///< of the socket that binds; empty: this socket binds
  std::string public_key;
  std::string secret_key;

  /// Generates keys. `server_key`: the key of the socket to connect to; empty for a socket that binds.
  static StreamKeys generate(std::string server_key);
};

/// The addresses to which producer and consumer connect. If both are empty there is no process in between:
/// the consumer binds, and the producer connects to it.
struct StreamEnds {
  std::string producer_uri;
  std::string consumer_uri;
  StreamTicket producer_ticket = {};
  StreamTicket consumer_ticket = {};
  StreamKeys producer_keys = {};
  StreamKeys consumer_keys = {};
};

/// Deliberate faults of a producer for the self-check. The consumer must detect each.
enum class Sabotage {
  none,
  damage,     ///< one byte of a message is wrong
  swap,       ///< two messages are in the wrong order
  lose,       ///< a message is omitted
  repeat,     ///< a message is sent twice
  shorten,    ///< a message lacks its last byte
  stale,      ///< a message belongs to another run
  extra,      ///< one message too many at the end
  end_early,  ///< the last message is omitted
  stop,       ///< the producer stops sending in the middle
  crash,      ///< the producer process dies in the middle
};

struct StreamPlan {
  std::size_t message_bytes = 100;
  std::uint64_t message_count = 0;  ///< data messages
  /// 0: as fast as possible; otherwise paced by the clock, and latency is measured.
  double messages_per_second = 0;
  std::chrono::milliseconds time_max{30'000};  ///< after this time everything is killed
  Sabotage sabotage = Sabotage::none;
};

struct StreamResult {
  double seconds = 0;              ///< from the first receive to the last, at the consumer
  double messages_per_second = 0;  ///< messages divided by those seconds
  std::vector<double> latency_us;  ///< one way, in order of sending, without the first tenth; only if paced
  double relay_cpu_seconds = 0;    ///< user and system time of the relay; only from run_tcp_relay
};

/// Runs the plan once. Error: a message was lost, repeated, reordered or damaged, a process failed, the time
/// ran out, or the producer could not keep the rate. Leaves no process behind.
Result<StreamResult> run_stream(const StreamEnds& ends, const StreamPlan& plan);

}  // namespace lightq::bench
