/// Writes metrics as text. Layer: metrics.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "metrics/histogram.hpp"

namespace lightq::broker {

/// The text formats for metrics.
enum class MetricFormat : std::uint8_t {
  prometheus,   ///< Prometheus text, version 0.0.4
  openmetrics,  ///< OpenMetrics text, version 1.0.0
};

/// Returns the format that an `Accept` header asks for: OpenMetrics only if it is named, and preferred at
/// least as much as plain text.
MetricFormat metric_format_of(std::string_view accept);
/// Returns the value of `Content-Type` for a text in this format.
std::string_view content_type_of(MetricFormat format);

enum class MetricType : std::uint8_t { counter, gauge, histogram };

/// The definition of a metric. Texts have static lifetime.
struct MetricInfo {
  std::string_view name;  ///< with its unit, and for counters with `_total`
  MetricType type = MetricType::gauge;
  std::string_view help;
};

/// Returns a label's value with the bytes escaped that the formats do not permit as they are: `\`, `"` and
/// line feeds.
std::string escaped_label(std::string_view value);

/// Writes metrics one after another. All samples of a metric follow its definition. Thread: one.
class MetricText {
 public:
  explicit MetricText(MetricFormat format) : format_(format) {}

  /// Begins a metric. It is written only if a sample follows.
  void begin(const MetricInfo& info) {
    info_ = info;
    has_head_ = false;
  }
  /// Writes a sample. `labels`: `name="value"` pairs with commas between them, escaped; may be empty.
  void sample(std::string_view labels, std::uint64_t value);
  void sample(std::string_view labels, double value);
  /// Writes the samples of a histogram.
  void histogram(const HistogramCounts& counts);
  /// Returns the whole text. Call it once, at the end.
  [[nodiscard]] std::string finish();

  [[nodiscard]] std::size_t size() const { return text_.size(); }

 private:
  void head();
  void line(std::string_view suffix, std::string_view labels);

  const MetricFormat format_;
  MetricInfo info_;
  bool has_head_ = false;
  std::string text_;
};

}  // namespace lightq::broker
