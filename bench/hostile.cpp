/// Benchmark suite `hostile`: a producer and a consumer, alone and beside 10,000 hostile connections, in the
/// same run. docs/benchmarks.md explains the results. Layer: bench.
#include "hostile_suite.hpp"
#include "support/broker_route.hpp"
#include "support/suite_program.hpp"

namespace {

constexpr const char* usage =
    "usage: lightq_bench_hostile [--quick] [--json FILE] [--markdown FILE] [--broker BINARY] [--part "
    "NAME]...\n"
    "                            [--connections N] [--rounds N]\n"
    "  --quick          fewer and shorter rounds: shows that all works, not how fast\n"
    "  --json FILE      the rows as an array of JSON objects\n"
    "  --markdown FILE  the tables as Markdown\n"
    "  --broker BINARY  the broker to measure; default: `lightq` beside this program's directory\n"
    "  --part NAME      only this part: sessions or plain\n"
    "  --connections N  hostile connections; default 10,000\n"
    "  --rounds N       instead of five\n"
    "Ends with 0 whatever the figures are, 1 if something could not run or came out wrong, 2 for bad "
    "usage.\n";

}  // namespace

int main(int argument_count, char** arguments) {
  using namespace lightq::bench;
  HostileOptions options;
  options.broker_binary = broker_beside(arguments[0]);
  SuiteArguments known;
  known.flag("--quick", options.quick);
  known.text("--broker", options.broker_binary);
  known.number("--connections", options.connections);
  known.number("--rounds", options.rounds_wanted);
  known.parts(options.parts);
  return run_suite({usage, known, [&] { return measure_hostile(options); }}, argument_count, arguments);
}
