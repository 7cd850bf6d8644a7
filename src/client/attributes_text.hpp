/// Prints a message's key, headers and time. Layer: cli.
#pragma once

#include <string>

#include <lightq/base/attributes.hpp>

#include "client/json_text.hpp"

namespace lightq::cli {

/// Adds `key`, `headers` and `producer_time_us`, each if the message has it. `headers` is an array of objects
/// with `name` and `value`, because names may repeat. Bytes that are not UTF-8 are added as `…_base64`.
void add_attributes(JsonObject& to, const AttributesView& attributes);

/// Appends each header as `name=value`, separated by commas. Escapes characters that a terminal cannot show,
/// commas, equals signs and backslashes with a backslash.
void append_headers(std::string& to, const AttributesView& attributes);

/// Appends any bytes as one line for a terminal. Escapes line ends, tabs, bytes that are not text, and the
/// characters of `also` with a backslash.
void append_shown(std::string& to, std::string_view bytes, std::string_view also = {});

}  // namespace lightq::cli
