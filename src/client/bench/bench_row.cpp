/// One row of a benchmark's matrix, and its results. Layer: cli.
#include "client/bench/bench_row.hpp"

#include <algorithm>
#include <optional>

#include <lightq/protocol/json_fields.hpp>

#include "client/json_text.hpp"
#include "client/units.hpp"

namespace lightq::cli {
namespace {

using protocol::detail::Json;

constexpr std::array<BenchTransport, 3> bench_transports = {BenchTransport::plain, BenchTransport::session,
                                                            BenchTransport::zmq};
constexpr std::array<session::ConfirmLevel, 3> bench_levels = {
    session::ConfirmLevel::topics_default, session::ConfirmLevel::received, session::ConfirmLevel::flushed};

/// Reads the members of a row. A fault makes the whole document invalid.
class EarlierReader {
 public:
  explicit EarlierReader(const Json& row) : row_(row) {}

  std::uint64_t count(const char* name) {
    const Json* const value = member(row_, name);
    const bool is_sound = value != nullptr && value->is_number_unsigned();
    if (!is_sound) fault(name);
    return is_sound ? value->get<std::uint64_t>() : std::uint64_t{0};
  }
  double number(const Json& object, const char* name) {
    const Json* const value = member(object, name);
    const bool is_sound = value != nullptr && value->is_number() && value->get<double>() >= 0;
    if (!is_sound) fault(name);
    return is_sound ? value->get<double>() : 0.0;
  }
  std::string word(const char* name) {
    const Json* const value = member(row_, name);
    const bool is_sound =
        value != nullptr && value->is_string() && value->get_ref<const std::string&>().size() <= 64;
    if (!is_sound) fault(name);
    return is_sound ? value->get<std::string>() : std::string();
  }
  void fault(const char* name) {
    if (fault_.empty()) fault_ = name;
  }
  [[nodiscard]] const std::string& fault() const { return fault_; }

 private:
  static const Json* member(const Json& object, const char* name) {
    const auto found = object.find(name);
    return found == object.end() ? nullptr : &*found;
  }

  const Json& row_;
  std::string fault_;
};

template <typename Word, typename Values>
auto value_of(EarlierReader& reader, const char* name, const Values& values, Word&& word_for) {
  const std::string text = reader.word(name);
  const auto found = std::ranges::find_if(values, [&](auto each) { return word_for(each) == text; });
  if (found != values.end()) return *found;
  reader.fault(name);
  return values.front();
}

Result<EarlierRow> read_earlier(const Json& row) {
  if (!row.is_object()) return Error{ErrorCode::invalid_argument, "a row is no object", 0};
  EarlierReader reader(row);
  EarlierRow earlier;
  earlier.row.producers = reader.count("producers");
  earlier.row.consumers = reader.count("consumers");
  earlier.row.size_bytes = reader.count("size_bytes");
  earlier.row.rate = reader.count("rate");
  earlier.row.confirm = value_of(reader, "confirm", bench_levels, confirm_word);
  earlier.row.transport =
      value_of(reader, "transport", bench_transports, [](BenchTransport each) { return to_word(each); });
  earlier.type = reader.word("type");
  earlier.mode = reader.word("mode");
  earlier.messages_per_second = reader.number(row, "messages_per_second");
  const auto latencies = row.find("latency_seconds");
  if (latencies == row.end() || !latencies->is_object()) {
    reader.fault("latency_seconds");
  } else {
    for (std::size_t at = 0; at < bench_shares.size(); ++at)
      earlier.latencies[at] = reader.number(*latencies, std::string(bench_shares[at].name).c_str());
  }
  if (reader.fault().empty()) return earlier;
  return Error{ErrorCode::invalid_argument, "the member " + reader.fault() + " of a row is missing or wrong",
               0};
}

}  // namespace

Result<std::vector<BenchRow>> bench_rows(const Bench& bench) {
  std::vector<BenchRow> rows;
  for (const BenchTransport transport : bench.transports) {
    for (const session::ConfirmLevel confirm : bench.confirms) {
      for (const std::uint64_t size : bench.sizes) {
        for (const std::uint64_t rate : bench.rates) {
          for (const std::uint64_t producers : bench.producers) {
            for (const std::uint64_t consumers : bench.consumers) {
              BenchRow row{producers, consumers, size, rate, confirm, transport};
              if (transport == BenchTransport::plain) row.confirm = session::ConfirmLevel::topics_default;
              if (std::ranges::find(rows, row) != rows.end()) continue;
              if (rows.size() == bench_rows_max)
                return Error{
                    ErrorCode::invalid_argument,
                    "these values have more than " + std::to_string(bench_rows_max) + " combinations", 0};
              rows.push_back(row);
            }
          }
        }
      }
    }
  }
  return rows;
}

std::string_view to_word(BenchTransport transport) {
  switch (transport) {
    case BenchTransport::session: return "session";
    case BenchTransport::zmq: return "zmq";
    case BenchTransport::plain: break;
  }
  return "plain";
}

std::string_view confirm_word(session::ConfirmLevel level) {
  switch (level) {
    case session::ConfirmLevel::received: return "received";
    case session::ConfirmLevel::flushed: return "flushed";
    case session::ConfirmLevel::topics_default: break;
  }
  return "default";
}

std::string label_of(const BenchRow& row) {
  std::string label = std::to_string(row.producers) + " x " + std::to_string(row.consumers) + ", " +
                      format_size(row.size_bytes) + ", " + std::string(to_word(row.transport));
  if (row.transport != BenchTransport::plain) label += ", " + std::string(confirm_word(row.confirm));
  if (row.rate > 0) label += ", " + format_rate(static_cast<double>(row.rate));
  return label;
}

std::string json_of(const BenchResult& result, std::string_view type, std::string_view mode) {
  JsonObject latencies;
  for (std::size_t at = 0; at < bench_shares.size(); ++at)
    latencies.add_raw(bench_shares[at].name, std::to_string(result.latencies[at]));
  return JsonObject()
      .add("producers", result.row.producers)
      .add("consumers", result.row.consumers)
      .add("size_bytes", result.row.size_bytes)
      .add("rate", result.row.rate)
      .add("confirm", confirm_word(result.row.confirm))
      .add("transport", to_word(result.row.transport))
      .add("type", type)
      .add("mode", mode)
      .add("received", result.received)
      .add("expected", result.expected)
      .add("out_of_order", result.out_of_order)
      .add_raw("seconds", std::to_string(result.seconds))
      .add_raw("messages_per_second", std::to_string(result.messages_per_second))
      .add_raw("latency_messages_per_second", std::to_string(result.latency_messages_per_second))
      .add_raw("latency_seconds", latencies.text())
      .text();
}

Result<std::vector<EarlierRow>> parse_bench(std::string_view text) {
  constexpr std::size_t earlier_rows_max = 10'000;
  const auto document = protocol::detail::parse_object(text, bench_document_bytes_max);
  if (!document)
    return Error{ErrorCode::invalid_argument, "no JSON of lightq bench: " + document.error().message, 0};
  const auto rows = document->find("rows");
  if (rows == document->end() || !rows->is_array() || rows->size() > earlier_rows_max)
    return Error{ErrorCode::invalid_argument, "no JSON of lightq bench: it has no rows", 0};
  std::vector<EarlierRow> found;
  for (const Json& row : *rows) {
    auto earlier = read_earlier(row);
    if (!earlier) return earlier.error();
    found.push_back(*std::move(earlier));
  }
  return found;
}

}  // namespace lightq::cli
