/// The operations on messages, streams and histories in the OpenAPI document. Layer: http.
#pragma once

#include "http/document/operation_parts.hpp"

namespace lightq::broker {

/// Adds the paths of the resources that are no commands, and the schemas of their messages. Thread: any.
void add_message_operations(Document& paths, Document& schemas);

}  // namespace lightq::broker
