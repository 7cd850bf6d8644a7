/// Reads one line of `lightq import`: a message as JSON. Layer: cli.
#include "client/transfer/import_line.hpp"

#include <cstdint>
#include <optional>

#include <lightq/base/base64.hpp>
#include <lightq/base/limits.hpp>
#include <lightq/protocol/json_fields.hpp>

namespace lightq::cli {
namespace {

using protocol::detail::FieldReader;

/// Returns the bytes of a member that is a text, or base64 under the name with `_base64`. Nothing if there is
/// neither, or after an error.
std::optional<std::string> read_bytes(FieldReader& fields, const std::string& name, std::size_t bytes_max) {
  const std::string encoded = name + "_base64";
  if (fields.has(name.c_str()) && fields.has(encoded.c_str()))
    fields.fail(name, "give one of " + name + " and " + encoded);
  if (fields.has(name.c_str())) return fields.free_text(name.c_str(), bytes_max);
  if (!fields.has(encoded.c_str())) return std::nullopt;
  auto bytes = from_base64(fields.free_text(encoded.c_str(), (bytes_max + 2) / 3 * 4));
  if (!bytes || bytes->size() > bytes_max)
    fields.fail(encoded, "must be base64 with padding, of at most " + std::to_string(bytes_max) + " bytes");
  return bytes;
}

void read_header(FieldReader& fields, ImportedMessage& to) {
  auto name = read_bytes(fields, "name", limits::header_name_bytes_max);
  auto value = read_bytes(fields, "value", limits::message_bytes_max_max);
  if (!name || name->empty()) fields.fail("name", "missing, or empty");
  if (!value) fields.fail("value", "missing");
  if (fields.error()) return;
  if (name->starts_with(dead_header_prefix)) {
    ++to.dropped_headers;
    return;
  }
  to.headers.emplace_back(*std::move(name), *std::move(value));
}

}  // namespace

Result<ImportedMessage> parse_import_line(std::string_view line, std::size_t line_bytes_max) {
  const auto object = protocol::detail::parse_object(line, line_bytes_max);
  if (!object && object.error().code == ErrorCode::invalid_cmd)
    return Error{ErrorCode::invalid_json, "not a JSON object"};
  if (!object) return object.error();
  FieldReader fields(*object);
  ImportedMessage message;
  auto payload = read_bytes(fields, "payload", limits::message_bytes_max_max);
  if (!payload) fields.fail("payload", "missing, as is payload_base64");
  message.key = read_bytes(fields, "key", limits::key_bytes_max).value_or("");
  fields.objects("headers", 2 * limits::headers_max,
                 [&](FieldReader& header) { read_header(header, message); });
  message.producer_time.us =
      static_cast<std::int64_t>(fields.number("producer_time_us", 0, protocol::detail::number_max, 0));
  if (fields.error()) return *fields.error();
  message.payload = *std::move(payload);
  return message;
}

}  // namespace lightq::cli
