/// What turns the control protocol into JSON and back, declared; the definitions follow in json.hpp, or in a
/// translation unit of their own. docs/protocol.md specifies every field. Layer: protocol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <lightq/base/limits.hpp>
#include <lightq/base/result.hpp>
#include <lightq/protocol/control.hpp>

/// A program with many translation units may compile the JSON once: define LIGHTQ_COMPILED_JSON for all of
/// them, and in one also LIGHTQ_JSON_DEFINITIONS before the first include. Otherwise everything is inline.
#if defined(LIGHTQ_COMPILED_JSON)
#define LIGHTQ_JSON
#else
#define LIGHTQ_JSON inline
#endif

namespace lightq::inline v1::protocol {

/// What became of a request's text.
struct ParsedRequest {
  Result<Request> request;
  std::string cmd;  ///< to echo in the answer, whether or not the request is good; empty where there is none
};

/// Reads a request. Unknown fields are ignored; a known one that is missing, of the wrong type or out of its
/// range is refused with a sentence that names it and its range, never its value. Of secrets no copy is left
/// behind but in what is answered, and in `text`. Any thread.
/// Errors: request_too_large, invalid_json, invalid_cmd, invalid_request.
LIGHTQ_JSON ParsedRequest parse_request(std::string_view text,
                                        std::size_t bytes_max = limits::request_bytes_max);

/// The request as one line of JSON, credentials included: never log it, and wipe it after use. No other copy
/// of them is left behind. Any thread.
LIGHTQ_JSON std::string to_json(const Request& request);

/// The reply as one line of JSON; `cmd` and `status` come first. Any thread.
LIGHTQ_JSON std::string to_json(const Reply& reply);

/// Reads what a broker answered to `asked`. An answer of status "error" is a value, an ErrorReply (a code
/// this version does not know becomes `internal`, its description stays); an answer that is not one is an
/// Error: invalid_json, invalid_request (naming the field), request_too_large (above 64 MiB). Any thread.
LIGHTQ_JSON Result<Reply> parse_reply(const Request& asked, std::string_view text);

/// What broker.json says, or server_key.json, which has no pid and no version.
struct BrokerFile {
  std::uint64_t pid = 0;
  std::string control_uri;
  std::string version;
  std::string server_key;  ///< its public key, Z85; empty: it does not encrypt
  /// The name of a Unix control socket in the directory of the file, for the broker's user and root; empty:
  /// there is none.
  std::string control_socket;
};

/// The content of a broker.json or server_key.json; nothing if it is none. Any thread.
LIGHTQ_JSON std::optional<BrokerFile> parse_broker_file(std::string_view text);

/// The administrator's credentials in an admin.json; nothing if it is not one. Any thread.
LIGHTQ_JSON std::optional<Credentials> parse_admin_file(std::string_view text);

}  // namespace lightq::inline v1::protocol
