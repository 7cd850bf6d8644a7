/// The part of a URL behind the question mark. Layer: http.
#include "http/query.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <lightq/base/limits.hpp>
#include <lightq/base/shown_text.hpp>

namespace lightq::broker {

namespace {

int digit_of(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

Error wrong_query(const std::string& why) {
  return {ErrorCode::invalid_request, "the query of the URL " + why};
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = lightq::detail::utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_space) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '+' && plus_is_space) {
      decoded += ' ';
    } else if (text[at] == '%') {
      if (at + 2 >= text.size()) return std::nullopt;
      const int high = digit_of(text[at + 1]);
      const int low = digit_of(text[at + 2]);
      if (high < 0 || low < 0 || high + low == 0) return std::nullopt;
      decoded += static_cast<char>(high * 16 + low);
      at += 2;
    } else {
      if (text[at] == '\0') return std::nullopt;
      decoded += text[at];
    }
  }
  return is_utf8(decoded) ? std::optional(std::move(decoded)) : std::nullopt;
}

Result<Query> Query::parse(std::string_view text) {
  Query query;
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(pair.size() + 1, text.size()));
    if (pair.empty()) continue;
    const std::size_t equals = std::min(pair.find('='), pair.size());
    auto name = percent_decoded(pair.substr(0, equals), true);
    auto value = percent_decoded(pair.substr(std::min(equals + 1, pair.size())), true);
    if (!name || !value) return wrong_query("has a % without two hexadecimal digits, a byte 0, or no UTF-8");
    if (name->empty()) return wrong_query("has a parameter without a name");
    if (query.find(*name)) return wrong_query("has a parameter twice: " + without_controls(*name));
    if (query.parameters_.size() == limits::http_query_parameters_max)
      return wrong_query("has more than " + std::to_string(limits::http_query_parameters_max) +
                         " parameters");
    query.parameters_.emplace_back(std::move(*name), std::move(*value));
  }
  return query;
}

std::optional<std::string_view> Query::find(std::string_view name) const {
  const auto found = std::ranges::find(parameters_, name, &QueryParameters::value_type::first);
  return found == parameters_.end() ? std::nullopt : std::optional<std::string_view>(found->second);
}

Error Query::unknown(std::string_view name) {
  return wrong_query("has an unknown parameter: " + without_controls(name));
}

}  // namespace lightq::broker
