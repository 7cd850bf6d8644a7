/// Benchmark suite `log`: the embedded queue beside other queues, beside the bare calls that it uses, and
/// against stated figures. docs/benchmarks.md explains the results. Layer: bench.
#include "log/log_self_check.hpp"
#include "log/log_suite.hpp"
#include "support/suite_program.hpp"

namespace {

using namespace lightq::bench;

constexpr const char* usage =
    "usage: lightq_bench_log [--quick] [--json FILE] [--markdown FILE] [--go-driver BINARY] [--part "
    "NAME]...\n"
    "       lightq_bench_log --self-check\n"
    "  --quick             fewer and shorter rounds: shows that all works, not how fast\n"
    "  --json FILE         the rows as an array of JSON objects\n"
    "  --markdown FILE     the tables as Markdown\n"
    "  --go-driver BINARY  what runs the queues written in Go (bench/go); without it their rows are left "
    "out\n"
    "  --part NAME         only this part: queues, bare-calls, scans, rates, tails, group-commit, growth\n"
    "  --self-check        show that the checks can fail, and end\n"
    "Ends with 0 whatever the figures are, 1 if something could not run or came out wrong, 2 for bad "
    "usage.\n";

Report measure(const LogOptions& options) {
  LogSuite suite(options);
  warm_memory(options.amount(4 * GiB));
  suite.run("queues", measure_against_queues);
  suite.run("bare-calls", measure_against_bare_calls);
  suite.run("scans", measure_scans);
  suite.run("rates", measure_rates);
  suite.run("tails", measure_tails);
  suite.run("group-commit", measure_group_commit);
  suite.run("growth", measure_growth);
  return suite.take_report();
}

}  // namespace

int main(int argument_count, char** arguments) {
  LogOptions options;
  SuiteArguments known;
  known.flag("--quick", options.quick);
  known.text("--go-driver", options.go_driver);
  known.parts(options.parts);
  return run_suite({usage, known, [&] { return measure(options); }, self_check_log}, argument_count,
                   arguments);
}
