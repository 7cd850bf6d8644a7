/// The common code of suite `delivery`. Layer: bench.
#include "delivery/delivery_suite.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <utility>

#include "support/child_process.hpp"
#include "support/machine.hpp"

namespace lightq::bench {

void throw_if_stopped() {
  if (stop_requested()) throw std::runtime_error("interrupted");
}

void throw_failure(const std::string& what) {
  throw std::runtime_error(what);
}

DeliverySuite::DeliverySuite(DeliveryOptions options) : options_(std::move(options)) {
  report_.suite = "delivery";
  report_.quick = options_.quick;
  note("`./scripts/bench delivery" + std::string(options_.quick ? " --quick" : "") + "`, " + today() + ", " +
       machine_description() + ".");
  note(
      "Medians (least–greatest) of alternating rounds after a warm-up that does not count; ratios pair by "
      "pair.");
}

void DeliverySuite::run(const std::string& part, const std::function<void(DeliverySuite&)>& work) {
  if (!options_.parts.wants(part) || stop_requested()) return;
  std::fprintf(stderr, "delivery: %s\n", part.c_str());
  try {
    work(*this);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "FAILED: %s: %s\n", part.c_str(), problem.what());
    report_.failures.push_back(part + ": " + problem.what());
  }
}

void DeliverySuite::add(Row row, double goal, double floor) {
  row.goal = goal;
  row.floor = floor;
  std::fprintf(stderr, "  %s: %s %s against %s: %s\n", row.title.c_str(), format_summary(row.ours).c_str(),
               row.unit.c_str(), format_summary(row.reference).c_str(), format_summary(row.ratio).c_str());
  report_.rows.push_back(std::move(row));
}

void DeliverySuite::add_bound(const std::string& name, const std::string& title, const std::string& unit,
                              const std::vector<double>& ours, double allowed) {
  const bool judged = allowed > 0;
  const std::vector<double> reference(ours.size(), judged ? allowed : 1);
  // A figure of zero has no ratio.
  constexpr double least = 0.001;
  std::vector<double> figures = ours;
  for (double& figure : figures) figure = std::max(figure, least);
  add(compare(name, title, unit, Better::less, figures, judged ? "the goal" : "one", reference),
      judged ? 1 : 0, judged ? 1 : 0);
}

DeliverySuite::Pairs DeliverySuite::alternate(int rounds, const std::function<double()>& ours,
                                              const std::function<double()>& reference) {
  Pairs pairs;
  for (int round = 0; round <= rounds; ++round) {
    throw_if_stopped();
    const bool ours_first = round % 2 == 0;
    double mine = ours_first ? ours() : 0;
    const double theirs = reference();
    if (!ours_first) mine = ours();
    if (round == 0) continue;
    pairs.ours.push_back(mine);
    pairs.reference.push_back(theirs);
  }
  return pairs;
}

SessionEnds session_ends_of(const BrokerRoute& route) {
  SessionEnds ends;
  ends.control_uri = route.control_uri();
  ends.server_key = route.server_key();
  ends.topic = route.topic();
  return ends;
}

double geometric_mean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  double logarithms = 0;
  for (const double value : values) logarithms += std::log(value);
  return std::exp(logarithms / static_cast<double>(values.size()));
}

Row sum_up(std::string name, std::string title, const std::vector<Row>& rows,
           const std::vector<std::vector<double>>& rounds) {
  Row sum;
  if (rows.empty()) return sum;
  sum.name = std::move(name);
  sum.title = std::move(title);
  sum.unit = rows.front().unit;
  sum.reference_name = rows.front().reference_name;
  sum.rounds = rows.front().rounds;
  const auto mean_of = [&](double (*figure)(const Row&)) {
    std::vector<double> figures;
    for (const Row& row : rows) figures.push_back(figure(row));
    return geometric_mean(figures);
  };
  const double ours = mean_of([](const Row& row) { return row.ours.median; });
  const double reference = mean_of([](const Row& row) { return row.reference.median; });
  const double ratio = mean_of([](const Row& row) { return row.ratio.median; });
  sum.ours = {ours, ours, ours};
  sum.reference = {reference, reference, reference};
  sum.ratio = {ratio, ratio, ratio};
  for (std::size_t round = 0; round < static_cast<std::size_t>(sum.rounds); ++round) {
    std::vector<double> ratios;
    for (const std::vector<double>& each : rounds) ratios.push_back(each.at(round));
    const double of_round = geometric_mean(ratios);
    sum.ratio.min = std::min(sum.ratio.min, of_round);
    sum.ratio.max = std::max(sum.ratio.max, of_round);
  }
  return sum;
}

}  // namespace lightq::bench
