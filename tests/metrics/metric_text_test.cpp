/// Tests of the text formats for metrics.
#include "metrics/metric_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace lightq::broker {

namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

std::string sample_of(MetricFormat format, const MetricInfo& info) {
  MetricText text(format);
  text.begin(info);
  text.sample("a=\"b\"", std::uint64_t{7});
  return text.finish();
}

TEST(MetricText, WritesCountersInBothFormats) {
  const MetricInfo info{"x_seconds_total", MetricType::counter, "Time."};
  EXPECT_EQ(sample_of(MetricFormat::prometheus, info),
            "# HELP x_seconds_total Time.\n# TYPE x_seconds_total counter\nx_seconds_total{a=\"b\"} 7\n");
  EXPECT_EQ(sample_of(MetricFormat::openmetrics, info),
            "# HELP x_seconds Time.\n# TYPE x_seconds counter\n# UNIT x_seconds seconds\n"
            "x_seconds_total{a=\"b\"} 7\n# EOF\n");
}

TEST(MetricText, StatesOnlyUnitsThatEndTheName) {
  const auto text = sample_of(MetricFormat::openmetrics, {"x_bytes_in_total", MetricType::counter, "Bytes."});
  EXPECT_THAT(text, Not(HasSubstr("# UNIT")));
}

TEST(MetricText, LeavesOutAMetricWithoutSamples) {
  MetricText text(MetricFormat::prometheus);
  text.begin({"x", MetricType::gauge, "Nothing."});
  text.begin({"y", MetricType::gauge, "Something."});
  text.sample({}, 0.25);
  EXPECT_EQ(text.finish(), "# HELP y Something.\n# TYPE y gauge\ny 0.25\n");
}

TEST(MetricText, WritesAHistogramThatAddsUp) {
  Histogram histogram;
  histogram.record(3);               // below 4 µs
  histogram.record(1'000'000, 2);    // a second
  histogram.record(100'000'000, 4);  // above the last bound
  MetricText text(MetricFormat::prometheus);
  text.begin({"x_seconds", MetricType::histogram, "Time."});
  text.histogram(histogram.counts());
  const std::string written = text.finish();
  EXPECT_THAT(written, HasSubstr("x_seconds_bucket{le=\"4e-06\"} 1\n"));
  EXPECT_THAT(written, HasSubstr("x_seconds_bucket{le=\"0.524288\"} 1\n"));
  EXPECT_THAT(written, HasSubstr("x_seconds_bucket{le=\"1.048576\"} 3\n"));
  EXPECT_THAT(written, HasSubstr("x_seconds_bucket{le=\"67.108864\"} 3\nx_seconds_bucket{le=\"+Inf\"} 7\n"));
  EXPECT_THAT(written, EndsWith("x_seconds_sum 402.000003\nx_seconds_count 7\n"));
}

TEST(MetricText, EscapesLabels) {
  EXPECT_EQ(escaped_label("a\\b\"c\nd{}"), "a\\\\b\\\"c\\nd{}");
}

TEST(MetricFormats, OpenMetricsIsChosenIfItIsWantedAtLeastAsMuch) {
  using enum MetricFormat;
  const auto of = [](const char* accept) { return metric_format_of(accept); };
  EXPECT_EQ(of(""), prometheus);
  EXPECT_EQ(of("*/*"), prometheus);
  EXPECT_EQ(of("application/openmetrics-text"), openmetrics);
  EXPECT_EQ(of("application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
               "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"),
            openmetrics);
  EXPECT_EQ(of("application/openmetrics-text;q=0.2, text/plain"), prometheus);
  EXPECT_EQ(of("application/openmetrics-text;q=0"), prometheus);
  EXPECT_EQ(of("application/openmetrics-text;q=nan"), prometheus);
  EXPECT_EQ(of("application/openmetrics-text;q=2"), prometheus);
  EXPECT_EQ(of(",;;,=q=,application/openmetrics-text ; q=0.9 ;"), openmetrics);
}

}  // namespace

}  // namespace lightq::broker
