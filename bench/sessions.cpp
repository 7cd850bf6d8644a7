/// Benchmark suite `sessions`: LightQ's sessions beside a bare TCP connection, libzmq and a relay of bytes,
/// in the same run. docs/benchmarks.md explains the results. Layer: bench.
#include "sessions_suite.hpp"
#include "support/broker_route.hpp"
#include "support/suite_program.hpp"

namespace {

constexpr const char* usage =
    "usage: lightq_bench_sessions [--quick] [--json FILE] [--markdown FILE] [--broker BINARY]\n"
    "                             [--part NAME]... [--window BYTES]\n"
    "  --quick          fewer and shorter rounds: shows that all works, not how fast\n"
    "  --json FILE      the rows as an array of JSON objects\n"
    "  --markdown FILE  the tables as Markdown\n"
    "  --broker BINARY  the broker to measure; default: `lightq` beside this program's directory\n"
    "  --part NAME      only this part: throughput, latency, flat-out, fan-out, crowd, topics, single or "
    "lag\n"
    "  --window BYTES   the window of each session's producer; default: the producer chooses it\n"
    "Ends with 0 whatever the figures are, 1 if something could not run or came out wrong, 2 for bad "
    "usage.\n";

}  // namespace

int main(int argument_count, char** arguments) {
  using namespace lightq::bench;
  SessionsOptions options;
  options.broker_binary = broker_beside(arguments[0]);
  SuiteArguments known;
  known.flag("--quick", options.quick);
  known.text("--broker", options.broker_binary);
  known.number("--window", options.window_bytes);
  known.parts(options.parts);
  return run_suite({usage, known, [&] { return measure_sessions(options); }}, argument_count, arguments);
}
