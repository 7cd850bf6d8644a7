/// Reads the parameters of a request. Layer: http.
#include "http/parameter_reader.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

#include <lightq/base/base64.hpp>
#include <lightq/base/types.hpp>

namespace lightq::broker {

using std::chrono::milliseconds;

std::optional<std::uint64_t> whole_number(std::string_view text, std::uint64_t min, std::uint64_t max) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc{} && end == text.data() + text.size();
  return is_number && min <= number && number <= max ? std::optional(number) : std::nullopt;
}

std::uint64_t ParameterReader::number(std::string_view name, std::uint64_t min, std::uint64_t max,
                                      std::uint64_t fallback) {
  const auto text = query_.find(name);
  if (!text) return fallback;
  if (const auto number = whole_number(*text, min, max)) return *number;
  fail(name, "must be a whole number from " + std::to_string(min) + " to " + std::to_string(max));
  return fallback;
}

milliseconds ParameterReader::time(std::string_view name, std::uint64_t min, std::uint64_t max,
                                   std::uint64_t fallback) {
  return milliseconds(static_cast<std::int64_t>(number(name, min, max, fallback)));
}

std::size_t ParameterReader::word(std::string_view name, const std::vector<std::string_view>& words) {
  const auto text = query_.find(name);
  if (!text) return 0;
  const auto found = std::ranges::find(words, *text);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  std::string rule = "must be one of";
  for (const std::string_view each : words) rule.append(" ").append(each);
  fail(name, rule);
  return 0;
}

std::string ParameterReader::name(std::string_view parameter) {
  const auto text = query_.find(parameter);
  if (!text) return {};
  if (!TopicName::parse(*text))
    fail(parameter,
         "must be 1 to 128 of the characters A-Z a-z 0-9 . _ - and must not begin with a dot or a dash");
  return std::string(*text);
}

std::optional<std::string> ParameterReader::bytes(const std::string& parameter, std::size_t bytes_max) {
  const std::string base64 = parameter + "_base64";
  const auto text = query_.find(parameter);
  const auto encoded = query_.find(base64);
  if (!text && !encoded) return std::nullopt;
  if (text && encoded) fail(base64, "not beside " + parameter);
  auto decoded = encoded ? from_base64(*encoded) : std::optional<std::string>(*text);
  if (!decoded) fail(base64, "must be Base64");
  if (decoded && decoded->size() > bytes_max)
    fail(encoded ? base64 : parameter, "must have at most " + std::to_string(bytes_max) + " bytes");
  return std::move(decoded).value_or(std::string());
}

std::optional<StartPosition> ParameterReader::place() {
  using From = StartPosition::From;
  const auto from = query_.find("from");
  const auto since = query_.find("time_us");
  if (!from && !since) return std::nullopt;
  if (from && since) fail("time_us", "not beside from");
  if (since) return StartPosition{From::time, number("time_us", 0, INT64_MAX, 0)};
  if (*from == "first") return StartPosition{From::first, 0};
  if (*from == "next") return StartPosition{From::next, 0};
  const auto offset = whole_number(*from, 0, INT64_MAX);
  if (!offset) fail("from", "must be an offset, first or next");
  return StartPosition{From::offset, offset.value_or(0)};
}

void ParameterReader::fail(std::string_view name, const std::string& why) {
  if (!error_) error_ = Error{ErrorCode::invalid_request, std::string(name) + ": " + why};
}

}  // namespace lightq::broker
