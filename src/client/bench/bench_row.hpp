/// One row of a benchmark's matrix, and its results. Layer: cli.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <lightq/base/result.hpp>

#include "client/bench/latencies.hpp"
#include "client/invocation.hpp"

namespace lightq::cli {

struct BenchRow {
  std::uint64_t producers = 1;
  std::uint64_t consumers = 1;
  std::uint64_t size_bytes = 100;
  std::uint64_t rate = 0;  ///< messages a second of all producers together; 0: as fast as possible
  session::ConfirmLevel confirm = session::ConfirmLevel::topics_default;
  BenchTransport transport = BenchTransport::plain;

  friend bool operator==(const BenchRow&, const BenchRow&) = default;
};

/// The percentiles that are reported.
struct BenchShare {
  std::string_view name;
  double share;
};
inline constexpr std::array<BenchShare, 5> bench_shares = {
    {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}, {"max", 1}}};

struct BenchResult {
  BenchRow row;
  std::uint64_t received = 0;
  std::uint64_t expected = 0;
  std::uint64_t out_of_order = 0;
  double seconds = 0;  ///< from the first message to the last
  double messages_per_second = 0;
  double latency_messages_per_second = 0;                  ///< the rate at which the latencies were measured
  std::array<double, bench_shares.size()> latencies = {};  ///< in seconds, in the order of bench_shares
};

/// Returns the rows of the matrix: each combination of the given values. Plain transport has no confirms, so
/// it has one row for all of them. Errors: invalid_argument (more than bench_rows_max).
Result<std::vector<BenchRow>> bench_rows(const Bench& bench);
inline constexpr std::size_t bench_rows_max = 200;

std::string_view to_word(BenchTransport transport);
/// Returns the word of a confirm level: `default`, `received` or `flushed`.
std::string_view confirm_word(session::ConfirmLevel level);
/// Returns the row in a few words, for example `2 x 3, 100 B, session, flushed`.
std::string label_of(const BenchRow& row);

/// Returns a row as a JSON object. `type` and `mode` are those of the topic.
std::string json_of(const BenchResult& result, std::string_view type, std::string_view mode);

/// A row of an earlier run, as json_of wrote it.
struct EarlierRow {
  BenchRow row;
  std::string type;
  std::string mode;
  double messages_per_second = 0;
  std::array<double, bench_shares.size()> latencies = {};
};

/// Reads the document of an earlier `lightq bench --json`. It may come from anybody. Errors:
/// invalid_argument.
Result<std::vector<EarlierRow>> parse_bench(std::string_view text);
inline constexpr std::size_t bench_document_bytes_max = 16 * limits::MiB;

}  // namespace lightq::cli
