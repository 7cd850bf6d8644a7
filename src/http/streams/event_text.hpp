/// Messages as server-sent events. Layer: http. docs/http.md, "Stream".
#pragma once

#include <string>
#include <string_view>

#include "http/http_response.hpp"
#include "requests/stream.hpp"

namespace lightq::broker {

/// A comment, by which a client sees that the stream lives.
inline constexpr std::string_view heartbeat_text = ":\n\n";

/// Returns the first text of a stream. `lease`: its name for clients; empty: there is none.
std::string first_text(std::string_view lease);
/// Appends an event for each message, and one before them for lost messages.
void append_events(const StreamedMessages& messages, std::string& to);
/// Returns the last event of a stream, with the problem that has ended it.
std::string end_text(const HttpResponse& problem);

}  // namespace lightq::broker
