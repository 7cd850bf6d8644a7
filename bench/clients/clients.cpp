/// Benchmark suite `clients`: the clients of all languages, beside NATS's clients of the same languages.
/// docs/benchmarks.md explains the results. Layer: bench.
#include <filesystem>

#include "clients/clients_suite.hpp"
#include "support/broker_route.hpp"
#include "support/suite_program.hpp"

namespace {

constexpr const char* usage =
    "usage: lightq_bench_clients [--quick] [--json FILE] [--markdown FILE] [--broker BINARY] [--rounds N]\n"
    "                            [--part NAME]... [--programs FILE]... [--servers DIRECTORY]\n"
    "       lightq_bench_clients --self-check\n"
    "  --quick               fewer messages: shows that all works, not how fast\n"
    "  --json FILE           the rows as an array of JSON objects\n"
    "  --markdown FILE       the tables as Markdown\n"
    "  --broker BINARY       the broker to use; default: `lightq` beside this program\n"
    "  --rounds N            instead of 5\n"
    "  --part NAME           only the clients of this language: cpp, c, go or python\n"
    "  --programs FILE       lines NAME=COMMAND: the programs with the clients; default: the list beside "
    "this program\n"
    "  --servers DIRECTORY   where to look for nats-server before PATH; without it: no rows beside NATS\n"
    "  --self-check          only checks that wrong messages fail a run, with every client\n"
    "Ends with 0 whatever the figures are, 1 if something could not run or came out wrong, 2 for bad "
    "usage.\n";

}  // namespace

int main(int argument_count, char** arguments) {
  using namespace lightq::bench;
  ClientsOptions options;
  options.broker_binary = broker_beside(arguments[0]);
  const auto list = std::filesystem::path(arguments[0]).parent_path() / "lightq_bench_clients.programs";
  add_programs(list.string(), options.programs);
  SuiteArguments known;
  known.flag("--quick", options.quick);
  known.text("--broker", options.broker_binary);
  known.text("--servers", options.servers);
  known.number("--rounds", options.rounds);
  known.parts(options.parts);
  known.values["--programs"] = [&](const std::string& file) { return add_programs(file, options.programs); };
  return run_suite(
      {usage, known, [&] { return measure_clients(options); }, [&] { return clients_self_check(options); }},
      argument_count, arguments);
}
