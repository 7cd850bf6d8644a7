/// Prints messages for `lightq consume`. Layer: cli.
#pragma once

#include <string>
#include <string_view>

#include <lightq/base/attributes.hpp>

#include "client/invocation.hpp"

namespace lightq::cli {

/// Appends the message as one line: its bytes (raw), a JSON object, or hexadecimal digits. The object has the
/// attributes and `payload`, or `payload_base64` if the payload is not UTF-8.
void append_message(std::string& to, std::string_view topic, std::string_view payload, Format format,
                    const AttributesView& attributes = {});

}  // namespace lightq::cli
