/// Reads one line of `lightq import`: a message as JSON. Layer: cli.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lightq/base/attributes.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

namespace lightq::cli {

/// A message as `lightq export` writes it. Where the message goes, it gets another offset and another time of
/// its append.
struct ImportedMessage {
  std::string payload;
  std::string key;
  std::vector<std::pair<std::string, std::string>> headers;
  Timestamp producer_time = {};
  std::size_t dropped_headers = 0;  ///< those that only the broker sets
};

/// Parses an object with `payload` or `payload_base64`, and perhaps `key`, `headers` and `producer_time_us`,
/// each also as `..._base64`. Other members, such as `offset`, are ignored. The text may come from anybody.
/// `line_bytes_max`: the longest line. Errors: request_too_large, invalid_json, invalid_request (naming the
/// member). Thread: any.
Result<ImportedMessage> parse_import_line(std::string_view line, std::size_t line_bytes_max);

}  // namespace lightq::cli
