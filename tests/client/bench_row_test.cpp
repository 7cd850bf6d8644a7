/// Tests the rows of benchmarks: the matrix, the JSON that a later run compares with, and the image.
#include "client/bench/bench_row.hpp"

#include <gtest/gtest.h>

#include "client/bench/bench_plot.hpp"

namespace lightq::cli {
namespace {

BenchResult result_of(const BenchRow& row) {
  return {.row = row,
          .received = 10,
          .expected = 10,
          .seconds = 0.5,
          .messages_per_second = 18,
          .latency_messages_per_second = 3,
          .latencies = {0.0001, 0.0002, 0.003, 0.004, 0.5}};
}

std::string document_of(const std::vector<BenchResult>& results) {
  std::string rows;
  for (const BenchResult& result : results)
    rows += (rows.empty() ? "" : ",") + json_of(result, "file", "pull");
  return R"({"cmd":"bench","rows":[)" + rows + "]}";
}

TEST(BenchRows, AreAllCombinations) {
  Bench bench;
  bench.producers = {1, 4};
  bench.consumers = {1, 2, 3};
  bench.sizes = {100, 1000};
  const auto rows = bench_rows(bench).value_or_throw();
  EXPECT_EQ(rows.size(), 12U);
  EXPECT_EQ(rows.front(), (BenchRow{.producers = 1, .consumers = 1, .size_bytes = 100}));
  EXPECT_EQ(rows.back(), (BenchRow{.producers = 4, .consumers = 3, .size_bytes = 1000}));
}

TEST(BenchRows, ArePlainOnceForAllConfirms) {
  Bench bench;
  bench.confirms = {session::ConfirmLevel::received, session::ConfirmLevel::flushed};
  bench.transports = {BenchTransport::plain, BenchTransport::session};
  const auto rows = bench_rows(bench).value_or_throw();
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].transport, BenchTransport::plain);
  EXPECT_EQ(rows[2].confirm, session::ConfirmLevel::flushed);
}

TEST(BenchRows, AreLimited) {
  Bench bench;
  bench.sizes.assign(bench_rows_max, 0);
  for (std::size_t i = 0; i < bench.sizes.size(); ++i) bench.sizes[i] = 16 + i;
  EXPECT_EQ(bench_rows(bench).value_or_throw().size(), bench_rows_max);
  bench.sizes.push_back(7);
  EXPECT_FALSE(bench_rows(bench).ok());
}

TEST(BenchRows, AreReadAsTheyWereWritten) {
  const BenchRow row{2, 3, 128, 1000, session::ConfirmLevel::flushed, BenchTransport::zmq};
  const auto earlier = parse_bench(document_of({result_of(row), result_of({})}));
  ASSERT_TRUE(earlier.ok()) << earlier.error().text();
  ASSERT_EQ(earlier->size(), 2U);
  EXPECT_EQ(earlier->front().row, row);
  EXPECT_EQ(earlier->back().row, BenchRow{});
  EXPECT_EQ(earlier->front().type, "file");
  EXPECT_EQ(earlier->front().mode, "pull");
  EXPECT_DOUBLE_EQ(earlier->front().messages_per_second, 18);
  EXPECT_DOUBLE_EQ(earlier->front().latencies[2], 0.003);
}

TEST(BenchRows, RefuseDocumentsOfOthers) {
  const std::string good = document_of({result_of({})});
  ASSERT_TRUE(parse_bench(good).ok());
  for (const std::string member : {"producers", "confirm", "transport", "type", "latency_seconds", "p99"}) {
    std::string without = good;
    without.replace(without.find("\"" + member + "\""), member.size() + 2, "\"x\"");
    const auto read = parse_bench(without);
    ASSERT_FALSE(read.ok()) << member;
    EXPECT_NE(read.error().message.find(member), std::string::npos) << read.error().message;
  }
  for (const char* const text : {"", "{}", "[]", R"({"rows":1})", R"({"rows":[1]})", R"({"rows":[{}]})"})
    EXPECT_FALSE(parse_bench(text).ok()) << text;
}

TEST(BenchPlot, HasALineAndALabelForEachRow) {
  const std::string svg = bench_plot({result_of({}), result_of({.producers = 7}), BenchResult{}});
  std::size_t lines = 0;
  for (std::size_t at = svg.find("<polyline"); at != std::string::npos; at = svg.find("<polyline", at + 1))
    ++lines;
  EXPECT_EQ(lines, 2U) << "the row without latencies is left out";
  EXPECT_NE(svg.find("7 x 1"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(BenchPlot, IsWholeWithoutRows) {
  const std::string svg = bench_plot({});
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(BenchPlot, EscapesTexts) {
  EXPECT_EQ(xml_escaped("a<b>&\"'\n"), "a&lt;b&gt;&amp;&quot;&apos; ");
}

}  // namespace
}  // namespace lightq::cli
