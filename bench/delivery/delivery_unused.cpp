/// Part `unused`: topics that use no feature of delivery, beside an older build in the same run. Layer:
/// bench.
#include <cstdint>
#include <stdexcept>
#include <string>

#include "delivery/delivery_suite.hpp"
#include "support/stream_program.hpp"

namespace lightq::bench {
namespace {

constexpr std::size_t unused_sizes[] = {100, 256, 512, 1024};
constexpr double unused_goal = 0.98;
constexpr double unused_floor = 0.95;
constexpr int unused_rounds = 11;  // single rounds spread by more than the goal leaves

struct Carrier {
  const char* name;  // for lightq_bench_stream and for the names of rows
  const char* title;
};
constexpr Carrier carriers[] = {
    {"queue", "transient, shared memory"}, {"tcp", "transient, TCP"}, {"file", "durable"}};

/// Returns the function that measures one stream, in million messages a second.
std::function<double()> stream_of(StreamProgram& program, const Carrier& carrier, std::size_t size,
                                  double payload_bytes) {
  return [&program, &carrier, size, payload_bytes] {
    const auto count = static_cast<std::uint64_t>(payload_bytes / static_cast<double>(size));
    return program.run(carrier.name, size, count).value_or_throw() / 1e6;
  };
}

}  // namespace

void measure_unused(DeliverySuite& suite) {
  const DeliveryOptions& options = suite.options();
  if (options.before_stream_binary.empty())
    throw std::runtime_error("there is no build to compare with (--before-stream)");
  const auto ours = StreamProgram::start(options.stream_binary).value_or_throw();
  const auto before = StreamProgram::start(options.before_stream_binary).value_or_throw();
  const std::string commit = options.before_commit.empty() ? "the build before" : options.before_commit;
  const double payload_bytes = options.quick ? 100e6 : 2e9;  // of a stream, as in suite `sessions`
  std::vector<Row> rows;
  std::vector<std::vector<double>> rounds;
  for (const Carrier& carrier : carriers) {
    for (const std::size_t size : unused_sizes) {
      const auto pairs = DeliverySuite::alternate(options.rounds(unused_rounds),
                                                  stream_of(*ours, carrier, size, payload_bytes),
                                                  stream_of(*before, carrier, size, payload_bytes));
      rows.push_back(
          compare("unused_" + std::string(carrier.name) + "_" + std::to_string(size),
                  "no feature used, " + std::string(carrier.title) + ", " + std::to_string(size) + " B",
                  "million msg/s", Better::more, pairs.ours, commit, pairs.reference));
      std::vector<double>& ratios = rounds.emplace_back();
      for (std::size_t i = 0; i < pairs.ours.size(); ++i)
        ratios.push_back(pairs.ours[i] / pairs.reference[i]);
      suite.add(rows.back());
    }
  }
  suite.add(sum_up("unused", "no feature used: geometric mean over all sizes and carriers", rows, rounds),
            unused_goal, unused_floor);
}

}  // namespace lightq::bench
