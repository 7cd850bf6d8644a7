/// A message's key, headers and time as the commands print them. Layer: cli.
#pragma once

#include <string>

#include <lightq/base/attributes.hpp>

#include "client/json_text.hpp"

namespace lightq::cli {

/// Adds `key`, `headers` (an array of objects with `name` and `value`, since names may be alike) and
/// `producer_time_us`, each where the message has it. What is not UTF-8 is added as `…_base64`.
void add_attributes(JsonObject& to, const AttributesView& attributes);

/// Appends `name=value` of each header with commas between them; what a terminal cannot show, commas, equals
/// signs and backslashes with a backslash.
void append_headers(std::string& to, const AttributesView& attributes);

/// Appends bytes on one line of a terminal, whatever they are: line ends, tabs and what is not text with a
/// backslash, and so each of `also`.
void append_shown(std::string& to, std::string_view bytes, std::string_view also = {});

}  // namespace lightq::cli
