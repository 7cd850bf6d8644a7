/// Messages as JSON, and back. Layer: http. docs/http.md, "Messages".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <lightq/base/result.hpp>

#include "http/http_request.hpp"
#include "requests/browse.hpp"
#include "requests/lease.hpp"
#include "requests/publication.hpp"
#include "requests/received_message.hpp"

namespace lightq::broker {

/// Packs the message of a request: its content is the payload, and its headers `Lightq-…` the attributes.
/// Errors: invalid_request, too_large.
Result<MessagesToPublish> message_of_request(const HttpRequest& request);
/// Packs the messages of a text in which each line is a message in JSON. Errors: invalid_request (naming the
/// line), too_large.
Result<MessagesToPublish> messages_of_lines(std::string_view text);

/// Returns the name of a lease for clients: 16 hexadecimal digits.
std::string name_of_lease(std::uint64_t lease);
/// Returns the number of a lease; 0, which no lease has, for another text.
std::uint64_t lease_named(std::string_view name);

/// Appends the message as one line of JSON, without the line's end.
void append_message(const ReceivedMessage& message, std::string& to);
/// Returns the lease and its messages as an object in JSON. `lease`: its name for clients; empty: there is
/// none.
std::string text_of(const Leased& leased, std::string_view lease);
/// Returns the messages of a read as an object in JSON.
std::string text_of(const Browsed& browsed);
/// Returns the offsets of ranges as JSON: a list of pairs, the first and the last of each.
std::string text_of(const std::vector<OffsetRange>& ranges);
/// Returns the ranges that `3,5-9` names: ascending, and not adjacent. Errors: invalid_request.
Result<std::vector<OffsetRange>> ranges_of(std::string_view text);

}  // namespace lightq::broker
