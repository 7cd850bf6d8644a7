/// How `lightq consume` prints a message. Layer: cli.
#pragma once

#include <string>
#include <string_view>

#include <lightq/base/attributes.hpp>

#include "client/invocation.hpp"

namespace lightq::cli {

/// Appends the message as one line: its bytes (raw), a JSON object (with `payload`, or `payload_base64`
/// where the bytes are not UTF-8, and with its attributes), or hexadecimal digits.
void append_message(std::string& to, std::string_view topic, std::string_view payload, Format format,
                    const AttributesView& attributes = {});

}  // namespace lightq::cli
