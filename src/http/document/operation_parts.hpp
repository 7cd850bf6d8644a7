/// Parts of operations in an OpenAPI document. Layer: http.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <lightq/protocol/json_fields.hpp>

namespace lightq::broker {

using Document = protocol::detail::OrderedJson;

/// Returns a reference to a part of the document, such as `#/components/schemas/Message`.
Document reference(const std::string& to);

Document text_schema();
Document number_schema(std::uint64_t least, std::uint64_t most);
/// Returns the schema of an offset, a count or a time in an answer.
Document count_schema();
Document choice_schema(const std::vector<std::string>& words);
Document list_schema(Document items);

/// Returns the schema of an object. `required`: the names of members that are always there.
Document object_schema(const std::vector<std::string>& required, Document properties);

/// `where`: path, query or header.
Document parameter(std::string_view name, std::string_view where, Document schema);
Document query_parameter(std::string_view name, Document schema);

/// Returns a response with a content of one type.
Document response(std::string_view words, std::string_view type, Document schema);

/// Says that an operation also works without a login: for topics that were created as `open`.
void open_to_all(Document& operation);

/// Returns an operation with the parameters in its path's braces. Its answer has JSON that fits `schema`, or
/// is a problem of any other status.
Document operation(std::string_view id, std::string_view path, unsigned status, Document schema);

}  // namespace lightq::broker
