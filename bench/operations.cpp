/// Benchmark suite `operations`: a scrape of many topics, an idle broker with HTTP, messages over HTTP, and
/// the start of a broker with many topics. docs/benchmarks.md explains the results. Layer: bench.
#include "operations_suite.hpp"
#include "support/broker_route.hpp"
#include "support/suite_program.hpp"

namespace {

constexpr const char* usage =
    "usage: lightq_bench_operations [--quick] [--json FILE] [--markdown FILE] [--broker BINARY] [--part "
    "NAME]...\n"
    "  --quick          fewer topics: shows that all works, not how fast\n"
    "  --json FILE      the rows as an array of JSON objects\n"
    "  --markdown FILE  the tables as Markdown\n"
    "  --broker BINARY  the broker to measure; default: `lightq` beside this program's directory\n"
    "  --part NAME      only this part: scrape, idle, http or start\n"
    "Ends with 0 whatever the figures are, 1 if something could not run or came out wrong, 2 for bad "
    "usage.\n";

}  // namespace

int main(int argument_count, char** arguments) {
  using namespace lightq::bench;
  OperationsOptions options;
  options.broker_binary = broker_beside(arguments[0]);
  SuiteArguments known;
  known.flag("--quick", options.quick);
  known.text("--broker", options.broker_binary);
  known.parts(options.parts);
  return run_suite({usage, known, [&] { return measure_operations(options); }}, argument_count, arguments);
}
