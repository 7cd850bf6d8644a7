/// Reads the parameters of a request. Layer: http.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <lightq/base/result.hpp>

#include "http/query.hpp"
#include "requests/browse.hpp"

namespace lightq::broker {

/// Returns the number in a text of digits; nothing for another text, or one that is outside of the range.
std::optional<std::uint64_t> whole_number(std::string_view text, std::uint64_t min, std::uint64_t max);

/// Reads parameters in turn, and keeps the first error. Lifetime: the query outlives it.
class ParameterReader {
 public:
  /// `known`: the names of all parameters; another one is an error.
  template <std::size_t N>
  ParameterReader(const Query& query, const std::array<std::string_view, N>& known)
      : query_(query), error_(query.objection(known)) {}

  std::uint64_t number(std::string_view name, std::uint64_t min, std::uint64_t max, std::uint64_t fallback);
  std::chrono::milliseconds time(std::string_view name, std::uint64_t min, std::uint64_t max,
                                 std::uint64_t fallback);
  /// Returns the place of the parameter's value among the words; 0 if it is not given.
  std::size_t word(std::string_view name, const std::vector<std::string_view>& words);
  /// Returns a name, for example of a group; empty if it is not given.
  std::string name(std::string_view parameter);
  /// Returns the bytes of `parameter`, or of `parameter`_base64; nothing if neither is given.
  std::optional<std::string> bytes(const std::string& parameter, std::size_t bytes_max);
  /// Returns a position from `from` (an offset, `first` or `next`) or `time_us`; nothing if neither is given.
  std::optional<StartPosition> place();
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  void fail(std::string_view name, const std::string& why);

 private:
  const Query& query_;
  std::optional<Error> error_;
};

}  // namespace lightq::broker
