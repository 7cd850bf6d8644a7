/// The part of a URL behind the question mark. Layer: http.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lightq/base/result.hpp>

namespace lightq::broker {

/// The parameters of a request, decoded, in their order.
using QueryParameters = std::vector<std::pair<std::string, std::string>>;

/// Returns true if the bytes are well-formed UTF-8.
bool is_utf8(std::string_view text);

/// Returns a text with each %XX replaced by its byte, and in queries each + by a space. Nothing if a % is
/// not followed by two hexadecimal digits, or if the result has a byte 0 or is not UTF-8.
std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_space);

/// The parameters of a request. Names are compared exactly. Thread: one.
class Query {
 public:
  /// Parses `a=1&b=2`. Errors: invalid_request (more than limits::http_query_parameters_max parameters, the
  /// same name twice, no name, a wrong escape, a byte 0, no UTF-8).
  static Result<Query> parse(std::string_view text);

  /// Returns a parameter's value; nothing if it is not given.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const;
  /// Returns an error that names the first parameter that is not in `known`; nothing if all are.
  template <typename Names>
  [[nodiscard]] std::optional<Error> objection(const Names& known) const {
    for (const auto& [name, value] : parameters_) {
      bool is_known = false;
      for (const std::string_view each : known) is_known |= name == each;
      if (!is_known) return unknown(name);
    }
    return std::nullopt;
  }
  [[nodiscard]] const QueryParameters& parameters() const { return parameters_; }

 private:
  static Error unknown(std::string_view name);

  QueryParameters parameters_;
};

}  // namespace lightq::broker
