/// Benchmark suite `peers`: LightQ beside other brokers. docs/benchmarks.md explains the results. Layer:
/// bench.
#include <cstdio>
#include <string>

#include "peers/peers_self_check.hpp"
#include "peers/peers_suite.hpp"
#include "support/broker_route.hpp"
#include "support/suite_program.hpp"

namespace {

constexpr const char* usage =
    "usage: lightq_bench_peers [--quick] [--json FILE] [--markdown FILE] [--broker BINARY] [--servers "
    "DIRECTORY]\n"
    "                          [--peer NAME]... [--part NAME]... [--rounds N]\n"
    "       lightq_bench_peers --list [--servers DIRECTORY]\n"
    "       lightq_bench_peers --self-check\n"
    "  --quick              one short round: shows that all works, not how fast\n"
    "  --json FILE          the rows as an array of JSON objects\n"
    "  --markdown FILE      the tables as Markdown\n"
    "  --broker BINARY      the LightQ broker to measure; default: `lightq` beside this program's directory\n"
    "  --servers DIRECTORY  where to look for servers of peers before PATH\n"
    "  --peer NAME          LightQ beside this peer only; may be repeated\n"
    "  --part NAME          only this part: memory, page-cache, synced, latency, work-queue, fan-out, idle, "
    "cpu or\n"
    "                       kill\n"
    "  --rounds N           instead of 5\n"
    "  --list               print the peers with their versions, and end\n"
    "  --self-check         show that the checks can fail, and end\n"
    "Ends with 0 whatever the figures are, 1 if something could not run or came out wrong, 2 for bad "
    "usage.\n";

}  // namespace

int main(int argument_count, char** arguments) {
  using namespace lightq::bench;
  PeersOptions options;
  options.programs.lightq = broker_beside(arguments[0]);
  bool list = false;
  SuiteArguments known;
  known.flag("--quick", options.quick);
  known.flag("--list", list);
  known.text("--broker", options.programs.lightq);
  known.text("--servers", options.programs.directory);
  known.number("--rounds", options.rounds_wanted);
  known.parts(options.parts);
  known.values["--peer"] = [&](const std::string& name) {
    options.wanted.push_back(name);
    return is_peer(name);
  };
  const auto measure = [&] {
    if (!list) return measure_peers(options);
    list_peers(options.programs);
    return Report{};
  };
  return run_suite({usage, known, measure, self_check_peers}, argument_count, arguments);
}
