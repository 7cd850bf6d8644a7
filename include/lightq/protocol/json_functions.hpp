/// Declares the functions that convert the control protocol to and from JSON. The definitions follow in
/// json.hpp, or in a translation unit of their own. docs/protocol.md specifies every field. Layer: protocol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <lightq/base/limits.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/separate.hpp>
#include <lightq/protocol/control.hpp>

namespace lightq::inline v1::protocol {

/// The result of parse_request.
struct ParsedRequest {
  Result<Request> request;
  std::string cmd;  ///< to repeat in the reply, whether or not the request is valid; empty if there is none
};

/// Parses a request. Unknown fields are ignored. A known field that is missing, has the wrong type or is out
/// of its range is refused. The error's sentence names the field and its range, never its value. Thread: any.
/// Errors: request_too_large, invalid_json, invalid_cmd, invalid_request.
LIGHTQ_INLINE ParsedRequest parse_request(std::string_view text,
                                          std::size_t bytes_max = limits::request_bytes_max);

/// Parses a request that may lack credentials, and adds those of `asker` where it lacks them: as the
/// administrator's if `is_admin` is true or if only those of a manager will do, otherwise as the user's.
/// Thread: any. Errors: those of parse_request.
LIGHTQ_INLINE Result<Request> parse_request_of(std::string_view text, const Credentials& asker,
                                               bool is_admin);

/// Returns the request as one line of JSON, credentials included. Never log it. Thread: any.
LIGHTQ_INLINE std::string to_json(const Request& request);

/// Returns the reply as one line of JSON; `cmd` and `status` come first. Thread: any.
LIGHTQ_INLINE std::string to_json(const Reply& reply);

/// Parses the broker's reply to `asked`. A reply of status "error" is returned as an ErrorReply; a code that
/// this version does not know becomes `internal`, and its description is kept. Errors, for a text that is no
/// valid reply: invalid_json, invalid_request (naming the field), request_too_large (above 64 MiB). Thread:
/// any.
LIGHTQ_INLINE Result<Reply> parse_reply(const Request& asked, std::string_view text);

/// The content of broker.json, or of server_key.json, which has no pid and no version.
struct BrokerFile {
  std::uint64_t pid = 0;
  std::string control_uri;
  std::string version;
  std::string server_key;  ///< the broker's public key, Z85; empty: the broker does not encrypt
  /// The file name of a Unix control socket in the directory of this file, for the broker's user and root.
  /// Empty: there is none.
  std::string control_socket;
};

/// Parses the content of a broker.json or server_key.json; returns nothing for any other content. Thread:
/// any.
LIGHTQ_INLINE std::optional<BrokerFile> parse_broker_file(std::string_view text);

/// Returns the administrator's credentials from the content of an admin.json; nothing for any other content.
/// Thread: any.
LIGHTQ_INLINE std::optional<Credentials> parse_admin_file(std::string_view text);

}  // namespace lightq::inline v1::protocol
