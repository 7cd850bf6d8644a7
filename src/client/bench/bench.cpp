/// `lightq bench`: measures the throughput and latency of producers and consumers in this process, through a
/// running broker. Layer: cli.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <optional>

#include <lightq/client.hpp>

#include "client/bench/bench_plot.hpp"
#include "client/bench/bench_row.hpp"
#include "client/bench/bench_run.hpp"
#include "client/invocation.hpp"
#include "client/json_text.hpp"
#include "client/session.hpp"
#include "client/terminal.hpp"
#include "client/text/text_table.hpp"
#include "client/units.hpp"

namespace lightq::cli {
namespace {

constexpr std::uint64_t stamp_bytes = 16;  // each message has at least as many

std::string_view bench_type_word(const Bench& bench) {
  return bench.topic.empty() ? to_word(bench.type) : std::string_view("given");
}

std::string_view bench_mode_word(const Bench& bench) {
  return bench.mode == Mode::sub ? "sub" : "pull";
}

std::string bench_histogram(const Latencies& latencies) {
  constexpr std::uint64_t from_ns = 1U << 14;  // 16 µs
  constexpr int rows = 20;
  constexpr double width = 50;
  std::array<std::uint64_t, rows> counts{};
  for (int i = 0; i < rows; ++i) {
    const std::uint64_t begin = i == 0 ? 0 : from_ns << (i - 1);
    counts[static_cast<std::size_t>(i)] = latencies.between(begin, from_ns << i);
  }
  const auto most = static_cast<double>(std::max<std::uint64_t>(1, *std::ranges::max_element(counts)));
  std::string text;
  for (int i = 0; i < rows; ++i) {
    const std::uint64_t count = counts[static_cast<std::size_t>(i)];
    if (count == 0) continue;
    const auto bar = static_cast<std::size_t>(static_cast<double>(count) / most * width);
    std::string below("< ");
    below += format_seconds(static_cast<double>(from_ns << i) / 1e9);
    const std::size_t width_bytes = below.find("µ") == std::string::npos ? 12 : 13;
    below.resize(std::max(below.size(), width_bytes), ' ');
    text += "  " + below + std::string(std::max<std::size_t>(bar, 1), '#') + " " + format_count(count) + "\n";
  }
  return text;
}

/// Returns "1.25x", or a dash if there is no earlier value.
std::string ratio_text(double now, double before) {
  if (before <= 0) return "-";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2fx", now / before);
  return text.data();
}

/// Reads a whole file of limited length. Errors: io_error, too_large.
Result<std::string> read_document(const std::string& name) {
  std::FILE* const file = std::fopen(name.c_str(), "rbe");
  if (file == nullptr) return Error{ErrorCode::io_error, "cannot open '" + name + "'", errno};
  std::string text(bench_document_bytes_max + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  const bool failed = std::ferror(file) != 0;
  std::fclose(file);
  if (failed) return Error{ErrorCode::io_error, "cannot read '" + name + "'", 0};
  if (text.size() > bench_document_bytes_max)
    return Error{ErrorCode::too_large, "'" + name + "' is too long", 0};
  return text;
}

Result<void> write_document(const std::string& name, const std::string& text) {
  std::FILE* const file = std::fopen(name.c_str(), "wbe");
  if (file == nullptr) return Error{ErrorCode::io_error, "cannot create '" + name + "'", errno};
  const bool is_written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) == 0 && is_written) return {};
  return Error{ErrorCode::io_error, "cannot write '" + name + "'", errno};
}

/// One run of the command.
class BenchRun {
 public:
  BenchRun(const Common& common, const Bench& bench, Client client)
      : common_(common), bench_(bench), client_(std::move(client)) {}

  int go() {
    if (auto read = prepare(); !read) {
      say_error(to_word(read.error().code), read.error().text());
      return exit_usage;
    }
    for (const BenchRow& row : rows_) {
      if (interrupted()) break;
      if (const int code = measure(row); code != exit_ok) exit_code_ = code;
      if (is_failed_) return exit_code_;
      if (is_single()) {
        tell_single();
      } else if (!common_.json && !common_.quiet) {
        say(label_of(row) + ": " + format_rate(results_.back().messages_per_second));
      }
    }
    Output out;
    const bool has_table = !is_single() || !bench_.compare_file.empty();
    if (common_.json || has_table) out.write(common_.json ? document() : table());
    if (!bench_.plot_file.empty()) {
      if (auto drawn = write_document(bench_.plot_file, bench_plot(results_)); !drawn)
        return fail(drawn.error());
    }
    return out.end() ? exit_code_ : exit_failure;
  }

 private:
  [[nodiscard]] bool is_single() const { return rows_.size() == 1; }

  Result<void> prepare() {
    auto rows = bench_rows(bench_);
    if (!rows) return rows.error();
    rows_ = *std::move(rows);
    for (BenchRow& row : rows_) row.size_bytes = std::max(row.size_bytes, stamp_bytes);
    if (bench_.compare_file.empty()) return {};
    const auto text = read_document(bench_.compare_file);
    if (!text) return text.error();
    auto earlier = parse_bench(*text);
    if (!earlier) return Error{earlier.error().code, bench_.compare_file + ": " + earlier.error().message, 0};
    earlier_ = *std::move(earlier);
    return {};
  }

  /// Runs a row in a topic of its own, or in the given one.
  int measure(const BenchRow& row) {
    if (!bench_.topic.empty()) return measure_in(bench_.topic, row);
    const std::string topic = "bench-" + std::to_string(getpid());
    TopicSettings settings;
    settings.broker_type = bench_.type;
    if (const Result<void> created = client_.create_topic(topic, settings); !created)
      return give_up(created, topic);
    const int code = measure_in(topic, row);
    if (const Result<void> deleted = client_.delete_topic(topic); !deleted) return give_up(deleted, topic);
    return code;
  }

  int measure_in(const std::string& topic, const BenchRow& row) {
    BenchSeen seen = run_bench_row(common_, client_, topic, bench_.mode, row, bench_.count);
    if (!seen.is_started) return give_up(seen.result, topic);
    BenchSeen calm;
    BenchRow slow = row;
    if (row.rate == 0 && seen.is_complete() && seen.result && !interrupted()) {
      const std::uint64_t copies = bench_.mode == Mode::sub ? row.consumers : 1;
      slow = paced(row, seen.rate() / static_cast<double>(copies));
      const std::uint64_t fewest = 100;
      const std::uint64_t count = std::min(bench_.count, std::max(fewest, 2 * slow.rate));
      calm = run_bench_row(common_, client_, topic, bench_.mode, slow, count);
      if (!calm.result) seen.result = calm.result;
    }
    const bool has_calm = calm.received > 0;
    note(row, seen, has_calm ? calm.latencies : seen.latencies, has_calm ? slow.rate : row.rate);
    if (!seen.is_complete()) explain_missing(topic);
    if (!seen.result) return fail(seen.result.error(), topic);
    return (seen.is_complete() || interrupted()) && seen.out_of_order == 0 ? exit_ok : exit_failure;
  }

  /// Returns a row that measures latency: a fifth of the rate that was reached, for about two seconds, so
  /// that no message waits behind many others.
  static BenchRow paced(const BenchRow& row, double reached) {
    constexpr double share = 0.2;
    BenchRow slow = row;
    slow.rate = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(reached * share));
    return slow;
  }

  void note(const BenchRow& row, const BenchSeen& seen, const Latencies& latencies, std::uint64_t rate) {
    BenchResult& result = results_.emplace_back();
    result.row = row;
    result.received = seen.received;
    result.expected = seen.expected;
    result.out_of_order = seen.out_of_order;
    result.seconds = seen.seconds;
    result.messages_per_second = seen.rate();
    result.latency_messages_per_second = static_cast<double>(rate);
    for (std::size_t at = 0; at < bench_shares.size(); ++at)
      result.latencies[at] = latencies.percentile(bench_shares[at].share);
    if (is_single()) histogram_ = bench_histogram(latencies);
  }

  int give_up(const Result<void>& failed, const std::string& topic) {
    is_failed_ = true;
    return exit_code_ = fail(failed.error(), topic);
  }

  /// Explains missing messages, if the broker's statistics show the reason.
  void explain_missing(const std::string& topic) {
    const Result<TopicStats> stats = client_.stats(topic);
    if (!stats || stats->refused + stats->rejected + stats->dropped == 0) return;
    say("topic '" + topic + "': " + format_count(stats->refused) + " refused (too large), " +
        format_count(stats->rejected) + " rejected (log full), " + format_count(stats->dropped) + " dropped");
  }

  /// Prints the only row in sentences, with a histogram.
  void tell_single() {
    if (common_.json) return;
    const BenchResult& result = results_.back();
    const auto size = static_cast<double>(result.row.size_bytes);
    const auto& at = result.latencies;
    Output out;
    out.write("received  " + format_count(result.received) + " of " + format_count(result.expected) +
              " messages of " + format_size(result.row.size_bytes) +
              (result.out_of_order == 0 ? ", in order" : ", some OUT OF ORDER or missing") + "\n");
    out.write("rate      " + format_rate(result.messages_per_second) + ", " +
              format_size(static_cast<std::uint64_t>(result.messages_per_second * size)) + "/s\n");
    out.write("latency   p50 " + format_seconds(at[0]) + ", p90 " + format_seconds(at[1]) + ", p99 " +
              format_seconds(at[2]) + ", p99.9 " + format_seconds(at[3]) + ", max " + format_seconds(at[4]) +
              ", at " + format_rate(result.latency_messages_per_second) + "\n");
    if (!common_.quiet && !histogram_.empty()) out.write(histogram_);
  }

  [[nodiscard]] const EarlierRow* earlier_of(const BenchResult& result) const {
    const auto found = std::ranges::find_if(earlier_, [&](const EarlierRow& each) {
      return each.row == result.row && each.type == bench_type_word(bench_) &&
             each.mode == bench_mode_word(bench_);
    });
    return found == earlier_.end() ? nullptr : &*found;
  }

  std::string table() {
    std::vector<TextTable::Column> columns = {
        {"ROW"}, {"RATE", true}, {"P50", true}, {"P99", true}, {"MAX", true}};
    if (!earlier_.empty()) {
      for (const char* const name : {"RATE NOW/THEN", "P50 NOW/THEN", "P99 NOW/THEN"})
        columns.push_back({name, true});
    }
    TextTable table(columns);
    for (const BenchResult& result : results_) {
      std::vector<std::string> cells = {
          label_of(result.row), format_rate(result.messages_per_second), format_seconds(result.latencies[0]),
          format_seconds(result.latencies[2]), format_seconds(result.latencies[4])};
      if (!earlier_.empty()) {
        const EarlierRow* const then = earlier_of(result);
        cells.push_back(
            ratio_text(result.messages_per_second, then == nullptr ? 0 : then->messages_per_second));
        cells.push_back(ratio_text(result.latencies[0], then == nullptr ? 0 : then->latencies[0]));
        cells.push_back(ratio_text(result.latencies[2], then == nullptr ? 0 : then->latencies[2]));
      }
      table.add(cells);
    }
    return table.text();
  }

  std::string document() {
    JsonArray rows;
    for (const BenchResult& result : results_) {
      std::string row = json_of(result, bench_type_word(bench_), bench_mode_word(bench_));
      if (const EarlierRow* const then = earlier_of(result)) {
        JsonObject ratios;
        const auto add = [&ratios](const char* name, double now, double before) {
          ratios.add_raw(name, before > 0 ? std::to_string(now / before) : "null");
        };
        add("messages_per_second", result.messages_per_second, then->messages_per_second);
        add("p50", result.latencies[0], then->latencies[0]);
        add("p99", result.latencies[2], then->latencies[2]);
        row.pop_back();
        row += ",\"now_then\":" + ratios.text() + "}";
      }
      rows.add(row);
    }
    std::string text =
        JsonObject().add("cmd", "bench").add("status", "ok").add_raw("rows", rows.text()).text();
    if (!is_single() || results_.empty()) return text + "\n";
    // The members of the only row are those of the document, too.
    text.pop_back();
    return text + "," + json_of(results_.back(), bench_type_word(bench_), bench_mode_word(bench_)).substr(1) +
           "\n";
  }

  const Common& common_;
  const Bench& bench_;
  Client client_;
  std::vector<BenchRow> rows_;
  std::vector<EarlierRow> earlier_;
  std::vector<BenchResult> results_;
  std::string histogram_;
  int exit_code_ = exit_ok;
  bool is_failed_ = false;
};

}  // namespace

int run_bench(const Common& common, const Bench& bench) {
  Result<Client> client = open_client(common);
  if (!client) return fail(client.error());
  BenchRun run(common, bench, std::move(*client));
  return run.go();
}

}  // namespace lightq::cli
