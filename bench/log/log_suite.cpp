/// The common code of suite `log`. Layer: bench.
#include "log/log_suite.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "support/machine.hpp"

namespace lightq::bench {

void throw_if_stopped() {
  if (stop_requested()) throw std::runtime_error("interrupted");
}

LogSuite::LogSuite(LogOptions options) : options_(std::move(options)) {
  report_.suite = "log";
  report_.quick = options_.quick;
  note("`./scripts/bench log" + std::string(options_.quick ? " --quick" : "") + "`, " + today() + ", " +
       machine_description() + ".");
  note("Medians (least–greatest) of " + std::to_string(options_.rounds()) +
       " alternating rounds (of \"sequential read\", and beside bigqueue at 128 B and satellite, " +
       std::to_string(options_.many_rounds()) +
       "), after a warm-up round that does not count; ratios pair by pair.");
}

void LogSuite::run(const std::string& part, const std::function<void(LogSuite&)>& work) {
  if (!options_.parts.wants(part) || stop_requested()) return;
  std::fprintf(stderr, "log: %s\n", part.c_str());
  try {
    work(*this);
  } catch (const std::exception& problem) {
    report_.failures.push_back(part + ": " + problem.what());
  }
}

void LogSuite::add(Row row, double goal) {
  row.goal = goal;
  row.floor = goal * 0.8;
  std::fprintf(stderr, "  %s: %s %s against %s: %s\n", row.title.c_str(), format_summary(row.ours).c_str(),
               row.unit.c_str(), format_summary(row.reference).c_str(), format_summary(row.ratio).c_str());
  report_.rows.push_back(std::move(row));
}

void LogSuite::add_expected(const std::string& name, const std::string& title, const std::string& unit,
                            Better better, const std::vector<double>& ours, double expected) {
  const std::vector<double> reference(ours.size(), expected);
  add(compare(name, title, unit, better, ours, "expected", reference), 1);
}

void LogSuite::alternate(int rounds, const std::function<void()>& ours,
                         const std::function<void()>& reference) {
  for (int round = 0; round <= rounds; ++round) {
    throw_if_stopped();
    if (round % 2 == 0) ours();
    reference();
    if (round % 2 != 0) ours();
  }
}

void LogSuite::alternate(int rounds, const std::function<double()>& ours,
                         const std::function<double()>& reference, std::vector<double>& our_values,
                         std::vector<double>& reference_values) {
  alternate(rounds, [&] { our_values.push_back(ours()); }, [&] { reference_values.push_back(reference()); });
  our_values.erase(our_values.begin());
  reference_values.erase(reference_values.begin());
}

void warm_memory(std::uint64_t bytes) {
  void* at =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (at != MAP_FAILED) ::munmap(at, bytes);
}

QueueOptions recycling_options(std::uint64_t segment_bytes, std::uint64_t segments) {
  QueueOptions options;
  options.segment_bytes = segment_bytes;
  options.mapped_bytes_max = segments * (segment_bytes + 4096);
  options.capacity_bytes = segments * segment_bytes;
  options.overflow = Overflow::drop_oldest;
  options.recycled_files_max = 2 * segments;
  options.background = true;
  return options;
}

}  // namespace lightq::bench
