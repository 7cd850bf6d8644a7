/// Benchmark suite `plain`: LightQ for plain ZeroMQ clients, beside libzmq without a broker and zmq_proxy, in
/// the same run. docs/benchmarks.md explains the results. Layer: bench.
#include "plain_measure.hpp"
#include "plain_report.hpp"
#include "plain_self_check.hpp"
#include "support/broker_route.hpp"
#include "support/suite_program.hpp"

namespace {

constexpr const char* usage =
    "usage: lightq_bench_plain [--quick] [--json FILE] [--markdown FILE] [--broker BINARY] [--references]\n"
    "       lightq_bench_plain --self-check\n"
    "  --quick          fewer and shorter rounds: shows that all works, not how fast\n"
    "  --json FILE      the rows as an array of JSON objects\n"
    "  --markdown FILE  the tables as Markdown\n"
    "  --broker BINARY  the broker to measure; default: `lightq` beside this program's directory\n"
    "  --references     leave LightQ out\n"
    "  --self-check     show that the checks can fail, and end\n"
    "Ends with 0 whatever the figures are, 1 if something could not run or came out wrong, 2 for bad "
    "usage.\n";

}  // namespace

int main(int argument_count, char** arguments) {
  using namespace lightq::bench;
  PlainOptions options;
  options.broker_binary = broker_beside(arguments[0]);
  SuiteArguments known;
  known.flag("--quick", options.quick);
  known.flag("--references", options.references_only);
  known.text("--broker", options.broker_binary);
  const auto measure = [&] { return report_plain(measure_plain(options), options); };
  return run_suite({usage, known, measure, self_check}, argument_count, arguments);
}
