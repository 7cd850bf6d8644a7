/// A client library in any language, as a program that produces or consumes numbered messages. Layer: bench
/// clients.
///
/// Such a program runs as `COMMAND produce|consume MODE TOPIC BYTES COUNT`. MODE says which calls it uses.
/// The environment names the server: LIGHTQ_BROKER, LIGHTQ_USER and LIGHTQ_PASSWORD, or NATS_URL.
/// - Message i has the bytes of NumberedMessages, from i = 0 to COUNT - 1.
/// - `produce` ends when everything is confirmed.
/// - `consume` is a member of group `bench`. It prints the line `ready` when it is connected. It compares
/// each
///   message with the expected one and acknowledges it. At the end it prints `received SECONDS`: the time
///   from message COUNT / 10 to the last one. It ends when the broker has all acknowledgements.
/// - Both end with another exit code than 0 if anything went wrong, with the reason on standard error.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <lightq/base/result.hpp>

namespace lightq::bench {

/// Commands by the name of their client.
using ClientPrograms = std::map<std::string, std::vector<std::string>, std::less<>>;

/// Adds the programs of a list: lines NAME=COMMAND, with words separated by blanks. Returns false if the file
/// cannot be read, or has another line.
bool add_programs(const std::string& file, ClientPrograms& programs);

/// One run of a producer and a consumer.
struct ClientRun {
  std::vector<std::string> producer;  ///< the command
  std::vector<std::string> consumer;
  std::string producer_mode;
  std::string consumer_mode;
  std::vector<std::pair<std::string, std::string>> environment;
  std::string topic;
  std::string directory;  ///< for the output of both
  std::uint64_t message_count = 0;
  std::chrono::seconds time_max{120};
};

struct ClientResult {
  double messages_per_second = 0;
  double cpu_seconds_per_million = 0;  ///< of both processes, from their start to their end
};

inline constexpr std::size_t client_message_bytes = 100;

/// Starts the consumer, then the producer, and waits for both. Errors: the output of a program that failed;
/// the time ran out. Leaves no process behind.
Result<ClientResult> run_clients(const ClientRun& run);

}  // namespace lightq::bench
