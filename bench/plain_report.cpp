/// Goals, floors and tables of suite `plain`. Layer: bench.
#include "plain_report.hpp"

#include <optional>

#include "support/machine.hpp"

namespace lightq::bench {
namespace {

struct Target {
  double goal = 0;
  double floor = 0;
};
constexpr Target queue_throughput{1.0, 0.8};
constexpr Target file_throughput{0.9, 0.7};
constexpr Target latency{1 / 1.3, 0.6};
constexpr Target only_informs{};

std::string name_of(const std::string& way_key) {
  if (way_key == way::direct) return "PUSH→PULL, no broker";
  if (way_key == way::proxy) return "zmq_proxy, HWM 1,000";
  if (way_key == way::proxy_deep) return "zmq_proxy, HWM 10,000";
  if (way_key == way::queue) return "LightQ `queue`";
  if (way_key == way::file) return "LightQ `file`, segments recycled";
  return "LightQ `file`, everything kept";
}

/// Returns a way's key in the form that row names have, such as `file_keeping` for `file-keeping`.
std::string word_of(std::string way_key) {
  for (char& c : way_key) c = c == '-' ? '_' : c;
  return way_key;
}

std::string rate_text(double messages_per_second) {
  return messages_per_second >= 1000 ? std::to_string(static_cast<int>(messages_per_second / 1000)) + ",000/s"
                                     : std::to_string(static_cast<int>(messages_per_second)) + "/s";
}

std::vector<double> in_millions(std::vector<double> values) {
  for (double& value : values) value /= 1e6;
  return values;
}

class PlainReport {
 public:
  PlainReport(const Measurements& measured, const PlainOptions& options)
      : measured_(measured), options_(options) {}

  Report make() {
    report_.suite = "plain";
    report_.quick = options_.quick;
    report_.failures = measured_.failures;
    add_notes();
    add_throughput_table();
    add_latency_table();
    for (const Load& load : throughput_loads()) add_throughput_rows(load);
    for (const Load& load : latency_loads()) add_latency_rows(load);
    for (const Load& load : throughput_loads()) add_cpu_rows(load);
    for (const char* ours : {way::queue, way::file, way::file_keeping}) add_peak_row(ours);
    return std::move(report_);
  }

 private:
  void add_notes() {
    report_.notes.push_back("`./scripts/bench plain" + std::string(options_.quick ? " --quick" : "") + "`, " +
                            today() + ", " + machine_description() + ".");
    report_.notes.push_back("Medians (least–greatest) of " + std::to_string(options_.rounds()) +
                            " alternating rounds for throughput, " +
                            std::to_string(options_.latency_rounds()) +
                            " for latency, after a warm-up round that does not count; ratios pair by pair.");
  }

  void add_throughput_table() {
    Table table{"Throughput, million messages a second", {"through"}, {}};
    for (const Load& load : throughput_loads()) {
      table.heads.push_back(std::to_string(load.message_bytes) + " B");
    }
    for (const char* key : all_ways) {
      std::vector<std::string> cells = {name_of(key)};
      for (const Load& load : throughput_loads()) {
        const Series* series = measured_.find(key, load);
        cells.push_back(series ? format_summary(summarize(in_millions(series->messages_per_second))) : "–");
      }
      add_if_measured(table, std::move(cells));
    }
    report_.tables.push_back(std::move(table));
  }

  void add_latency_table() {
    Table table{"One-way latency of 100 B messages, µs", {"through"}, {}};
    for (const Load& load : latency_loads()) {
      table.heads.push_back("p50 at " + rate_text(load.messages_per_second));
      table.heads.push_back("p99 at " + rate_text(load.messages_per_second));
    }
    for (const char* key : all_ways) {
      std::vector<std::string> cells = {name_of(key)};
      for (const Load& load : latency_loads()) {
        const Series* series = measured_.find(key, load);
        cells.push_back(series ? format_summary(summarize(series->latency_p50_us)) : "–");
        cells.push_back(series ? format_summary(summarize(series->latency_p99_us)) : "–");
      }
      add_if_measured(table, std::move(cells));
    }
    report_.tables.push_back(std::move(table));
  }

  static void add_if_measured(Table& table, std::vector<std::string> cells) {
    for (std::size_t i = 1; i < cells.size(); ++i) {
      if (cells[i] != "–") return table.cells.push_back(std::move(cells));
    }
  }

  /// Returns the proxy that was better for this load. LightQ is compared with it.
  [[nodiscard]] const char* better_proxy(const Load& load) const {
    const Series* shallow = measured_.find(way::proxy, load);
    const Series* deep = measured_.find(way::proxy_deep, load);
    if (deep == nullptr) return way::proxy;
    if (shallow == nullptr) return way::proxy_deep;
    const bool deep_wins =
        summarize(deep->messages_per_second).median >= summarize(shallow->messages_per_second).median;
    return deep_wins ? way::proxy_deep : way::proxy;
  }

  void add_throughput_rows(const Load& load) {
    const std::string judge = better_proxy(load);
    const std::string other = judge == way::proxy ? way::proxy_deep : way::proxy;
    add_throughput_row(way::queue, judge, load, queue_throughput, "");
    add_throughput_row(way::file, judge, load, file_throughput, "");
    add_throughput_row(way::file_keeping, judge, load, only_informs, "");
    for (const char* ours : {way::queue, way::file}) {
      add_throughput_row(ours, other, load, only_informs, "_vs_" + word_of(other));
      add_throughput_row(ours, way::direct, load, only_informs, "_vs_direct");
    }
  }

  void add_throughput_row(const std::string& ours, const std::string& reference, const Load& load,
                          Target target, const std::string& name_end) {
    const std::string bytes = std::to_string(load.message_bytes);
    add_row(ours, reference, load, word_of(ours) + "_throughput_" + bytes + name_end,
            name_of(ours) + ", throughput at " + bytes + " B", "million msg/s", Better::more,
            &Series::messages_per_second, target);
  }

  void add_latency_rows(const Load& load) {
    const std::string rate = rate_text(load.messages_per_second);
    const std::string at = "_at_" + std::to_string(static_cast<int>(load.messages_per_second));
    for (const std::string ours : {way::queue, way::file}) {
      const std::string title = name_of(ours) + ", one-way latency at " + rate;
      add_row(ours, way::proxy, load, ours + "_latency_p50" + at, title + ", p50", "µs", Better::less,
              &Series::latency_p50_us, latency);
      add_row(ours, way::proxy, load, ours + "_latency_p99" + at, title + ", p99", "µs", Better::less,
              &Series::latency_p99_us, only_informs);
    }
  }

  void add_cpu_rows(const Load& load) {
    const std::string bytes = std::to_string(load.message_bytes);
    for (const std::string ours : {way::queue, way::file}) {
      add_row(ours, better_proxy(load), load, ours + "_cpu_" + bytes,
              name_of(ours) + ", broker's CPU at " + bytes + " B", "s per million messages", Better::less,
              &Series::cpu_seconds_per_million, only_informs);
    }
  }

  void add_row(const std::string& ours, const std::string& reference, const Load& load, std::string name,
               std::string title, std::string unit, Better better, std::vector<double> Series::* values,
               Target target) {
    const Series* our_series = measured_.find(ours, load);
    const Series* reference_series = measured_.find(reference, load);
    if (our_series == nullptr || reference_series == nullptr) return;
    const auto scaled = [values](const std::vector<double>& raw) {
      return values == &Series::messages_per_second ? in_millions(raw) : raw;
    };
    Row row = compare(std::move(name), std::move(title), std::move(unit), better, scaled(our_series->*values),
                      name_of(reference), scaled(reference_series->*values));
    row.goal = target.goal;
    row.floor = target.floor;
    report_.rows.push_back(std::move(row));
  }

  void add_peak_row(const std::string& ours) {
    const auto our_peak = measured_.peak_mebibytes.find(ours);
    const auto reference_peak = measured_.peak_mebibytes.find(way::proxy_deep);
    if (our_peak == measured_.peak_mebibytes.end()) return;
    if (reference_peak == measured_.peak_mebibytes.end()) return;
    report_.rows.push_back(compare(
        word_of(ours) + "_peak_memory", name_of(ours) + ", broker's peak resident memory over all loads",
        "MiB", Better::less, {our_peak->second}, name_of(way::proxy_deep), {reference_peak->second}));
  }

  static constexpr const char* all_ways[] = {way::direct, way::proxy, way::proxy_deep,
                                             way::queue,  way::file,  way::file_keeping};
  const Measurements& measured_;
  const PlainOptions& options_;
  Report report_;
};

}  // namespace

Report report_plain(const Measurements& measured, const PlainOptions& options) {
  return PlainReport(measured, options).make();
}

}  // namespace lightq::bench
