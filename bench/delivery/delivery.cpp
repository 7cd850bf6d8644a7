/// Benchmark suite `delivery`: the cost of groups' state, leases and redelivery. docs/benchmarks.md
/// explains the results. Layer: bench.
#include <filesystem>

#include "delivery/delivery_self_check.hpp"
#include "delivery/delivery_suite.hpp"

namespace {

using namespace lightq::bench;

constexpr const char* usage =
    "usage: lightq_bench_delivery [--quick] [--json FILE] [--markdown FILE] [--broker BINARY]\n"
    "                             [--before-stream BINARY] [--before-commit NAME] [--part NAME]...\n"
    "                             [--rounds N]\n"
    "       lightq_bench_delivery --self-check\n"
    "  --quick                 fewer and shorter rounds: shows that all works, not how fast\n"
    "  --json FILE             the rows as an array of JSON objects\n"
    "  --markdown FILE         the tables as Markdown\n"
    "  --broker BINARY         the broker to measure, except in part `unused`; default: `lightq` beside "
    "this\n"
    "                          program's directory\n"
    "  --before-stream BINARY  lightq_bench_stream of the build that part `unused` compares with\n"
    "  --before-commit NAME    what the rows call that build\n"
    "  --part NAME             only this part: unused, slow-member, retry, attempts, delay,\n"
    "                          delay-waiting, delay-due, delay-ten-million, ttl, leases or state\n"
    "  --rounds N              instead of the parts' own numbers\n"
    "  --self-check            show that the checks can fail, and end\n"
    "Ends with 0 whatever the figures are, 1 if something could not run or came out wrong, 2 for bad "
    "usage.\n";

Report measure(const DeliveryOptions& options) {
  DeliverySuite suite(options);
  suite.run("unused", measure_unused);
  suite.run("slow-member", measure_slow_member);
  suite.run("retry", measure_retry);
  suite.run("attempts", measure_attempts);
  suite.run("delay", measure_delay);
  suite.run("ttl", measure_ttl);
  suite.run("delay-waiting", measure_delay_waiting);
  suite.run("delay-due", measure_delay_due);
  suite.run("delay-ten-million", measure_delay_ten_million);
  suite.run("leases", measure_leases);
  suite.run("state", measure_state);
  return suite.take_report();
}

}  // namespace

int main(int argument_count, char** arguments) {
  DeliveryOptions options;
  options.broker_binary = broker_beside(arguments[0]);
  options.stream_binary =
      (std::filesystem::path(arguments[0]).parent_path() / "lightq_bench_stream").string();
  SuiteArguments known;
  known.flag("--quick", options.quick);
  known.text("--broker", options.broker_binary);
  known.text("--before-stream", options.before_stream_binary);
  known.text("--before-commit", options.before_commit);
  known.number("--rounds", options.rounds_wanted);
  known.parts(options.parts);
  return run_suite({usage, known, [&] { return measure(options); }, self_check_delivery}, argument_count,
                   arguments);
}
