/// Writes metrics as text. Layer: metrics.
#include "metrics/metric_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <utility>

namespace lightq::broker {

namespace {

constexpr std::string_view total = "_total";
constexpr double us_per_second = 1e6;
// The bounds of the printed buckets: powers of two, from 4 µs to 67 s.
constexpr unsigned first_bound = 2;
constexpr unsigned last_bound = 26;

template <typename Number>
std::string_view written(std::array<char, 32>& space, Number number) {
  const auto [end, error] = std::to_chars(space.data(), space.data() + space.size(), number);
  return {space.data(), static_cast<std::size_t>(end - space.data())};
}

std::string_view word_of(MetricType type) {
  constexpr std::string_view words[] = {"counter", "gauge", "histogram"};
  return words[static_cast<std::size_t>(type)];
}

/// Returns the unit at the end of a metric's name; empty if it is none of the base units.
std::string_view unit_of(std::string_view name) {
  constexpr std::string_view units[] = {"seconds", "bytes"};
  for (const std::string_view unit : units) {
    if (name.ends_with(unit) && name.size() > unit.size() && name[name.size() - unit.size() - 1] == '_')
      return unit;
  }
  return {};
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// Takes the part of `text` before the next `mark`, and removes it with the mark.
std::string_view take_until(std::string_view& text, char mark) {
  const auto at = std::min(text.find(mark), text.size());
  const std::string_view part = trimmed(text.substr(0, at));
  text.remove_prefix(std::min(at + 1, text.size()));
  return part;
}

/// Returns the weight in thousandths that a media range's parameters state; 0 if it is no number.
int weight_of(std::string_view parameters) {
  while (!parameters.empty()) {
    const std::string_view parameter = take_until(parameters, ';');
    if (!parameter.starts_with("q=")) continue;
    double weight = 0;
    const auto [end, error] =
        std::from_chars(parameter.data() + 2, parameter.data() + parameter.size(), weight);
    return error == std::errc() && weight >= 0 && weight <= 1 ? static_cast<int>(weight * 1000) : 0;
  }
  return 1000;
}

}  // namespace

MetricFormat metric_format_of(std::string_view accept) {
  int open = 0;
  int plain = 0;
  while (!accept.empty()) {
    std::string_view range = take_until(accept, ',');
    const std::string_view type = take_until(range, ';');
    const int weight = weight_of(range);
    if (type == "application/openmetrics-text") open = std::max(open, weight);
    if (type == "text/plain" || type == "text/*") plain = std::max(plain, weight);
  }
  return open > 0 && open >= plain ? MetricFormat::openmetrics : MetricFormat::prometheus;
}

std::string_view content_type_of(MetricFormat format) {
  return format == MetricFormat::openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                             : "text/plain; version=0.0.4; charset=utf-8";
}

std::string escaped_label(std::string_view value) {
  std::string escaped;
  escaped.reserve(value.size());
  for (const char each : value) {
    if (each == '\n') {
      escaped += "\\n";
      continue;
    }
    if (each == '\\' || each == '"') escaped += '\\';
    escaped += each;
  }
  return escaped;
}

/// OpenMetrics names a counter without `_total`, and its samples with it.
void MetricText::head() {
  if (std::exchange(has_head_, true)) return;
  const bool open = format_ == MetricFormat::openmetrics;
  std::string_view name = info_.name;
  if (open && name.ends_with(total)) name.remove_suffix(total.size());
  const auto state = [&](std::string_view what, std::string_view words) {
    text_.append("# ").append(what).append(" ").append(name).append(" ").append(words).append("\n");
  };
  state("HELP", info_.help);
  state("TYPE", word_of(info_.type));
  if (const std::string_view unit = unit_of(name); open && !unit.empty()) state("UNIT", unit);
}

void MetricText::line(std::string_view suffix, std::string_view labels) {
  text_.append(info_.name).append(suffix);
  if (!labels.empty()) text_.append("{").append(labels).append("}");
  text_ += ' ';
}

void MetricText::sample(std::string_view labels, std::uint64_t value) {
  head();
  line({}, labels);
  std::array<char, 32> space{};
  text_.append(written(space, value)) += '\n';
}

void MetricText::sample(std::string_view labels, double value) {
  head();
  line({}, labels);
  std::array<char, 32> space{};
  text_.append(written(space, value)) += '\n';
}

void MetricText::histogram(const HistogramCounts& counts) {
  head();
  std::array<char, 32> space{};
  const auto bucket = [&](std::string_view bound, std::uint64_t below) {
    text_.append(info_.name).append("_bucket{le=\"").append(bound).append("\"} ");
    text_.append(written(space, below)) += '\n';
  };
  std::uint64_t below = 0;
  std::size_t next = 0;
  for (unsigned power = first_bound; power <= last_bound; ++power) {
    const std::uint64_t bound_us = std::uint64_t{1} << power;
    while (next + 1 < counts.buckets.size() && DurationBuckets::end_of(next) <= bound_us)
      below += counts.buckets[next++];
    std::array<char, 32> bound{};
    bucket(written(bound, static_cast<double>(bound_us) / us_per_second), below);
  }
  bucket("+Inf", counts.count);
  line("_sum", {});
  text_.append(written(space, static_cast<double>(counts.sum_us) / us_per_second)) += '\n';
  line("_count", {});
  text_.append(written(space, counts.count)) += '\n';
}

std::string MetricText::finish() {
  if (format_ == MetricFormat::openmetrics) text_ += "# EOF\n";
  return std::move(text_);
}

}  // namespace lightq::broker
