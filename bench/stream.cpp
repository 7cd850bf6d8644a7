/// Runs streams over sessions as another program asks for them, with the broker and the client of its own
/// build. So a suite can compare two builds in alternating rounds. Layer: bench.
///
/// Reads lines `CARRIER BYTES COUNT` from standard input and runs one stream for each: COUNT messages of
/// BYTES bytes. CARRIER is `queue` (transient, shared memory), `tcp` (transient, TCP) or `file` (durable,
/// shared memory, recycled segments). Answers with a line: messages per second, or `failed: ` and the reason.
/// The brokers live until the input ends, so that all streams find them equally warm.
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>

#include "support/broker_route.hpp"
#include "support/child_process.hpp"
#include "support/session_stream.hpp"

namespace {

using namespace lightq;
using namespace lightq::bench;

// As suite `sessions` has them.
constexpr std::uint64_t file_retention_bytes = 256ull << 20;
constexpr std::uint64_t file_segment_bytes = 64ull << 20;
constexpr std::chrono::seconds stream_time_max{60};

class Streams {
 public:
  explicit Streams(std::string broker_binary) : broker_binary_(std::move(broker_binary)) {}

  /// Runs the stream that a line asks for, and returns its messages per second.
  Result<double> run(const std::string& line) {
    std::istringstream words(line);
    std::string carrier;
    StreamPlan plan;
    if (!(words >> carrier >> plan.message_bytes >> plan.message_count) || plan.message_count == 0)
      return failure("not a stream: " + line);
    plan.time_max = stream_time_max;
    const bool durable = carrier == "file";
    const Result<BrokerRoute*> route = route_for(durable, carrier + "-" + std::to_string(plan.message_bytes));
    if (!route) return route.error();
    SessionEnds ends;
    if (carrier == "tcp") ends.transport = Transport::tcp;
    ends.control_uri = (*route)->control_uri();
    ends.server_key = (*route)->server_key();
    ends.topic = (*route)->topic();
    const Result<SessionResult> result = run_session_stream(ends, plan, false);
    if (!result) return result.error();
    return result->stream.messages_per_second;
  }

 private:
  struct Carrier {
    std::unique_ptr<BrokerRoute> route;
    std::string prepared;  // the kind of stream for which the topic was made
  };

  /// Returns the broker's topic for streams of one kind. Makes another topic when the kind changes.
  Result<BrokerRoute*> route_for(bool durable, const std::string& kind) {
    Carrier& carrier = durable ? file_ : queue_;
    if (!carrier.route) {
      nlohmann::json settings = {{"broker_type", "queue"}};
      if (durable) {
        settings = {{"broker_type", "file"},
                    {"retention_bytes", file_retention_bytes},
                    {"segment_bytes", file_segment_bytes}};
      }
      auto started = BrokerRoute::start(broker_binary_, settings);
      if (!started) return started.error();
      carrier.route = std::move(started).value();
    }
    if (carrier.prepared != kind) {
      if (const Result<void> made = carrier.route->prepare(kind); !made) return made.error();
      carrier.prepared = kind;
    }
    return carrier.route.get();
  }

  std::string broker_binary_;
  Carrier queue_;
  Carrier file_;
};

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 1) {
    std::fprintf(stderr, "usage: %s\nReads `queue|tcp|file BYTES COUNT` lines; see bench/stream.cpp.\n",
                 arguments[0]);
    return 2;
  }
  try {
    stop_on_signals();
    Streams streams(broker_beside(arguments[0]));
    std::string line;
    while (!stop_requested() && std::getline(std::cin, line)) {
      const Result<double> rate = streams.run(line);
      if (rate) {
        std::printf("%.1f\n", *rate);
      } else {
        std::string why = rate.error().text();
        for (char& each : why) each = each == '\n' ? ' ' : each;
        std::printf("failed: %s\n", why.c_str());
      }
      std::fflush(stdout);
    }
    return 0;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s: %s\n", arguments[0], problem.what());
    return 1;
  }
}
