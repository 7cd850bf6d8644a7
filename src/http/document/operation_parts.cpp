/// Parts of operations in an OpenAPI document. Layer: http.
#include "http/document/operation_parts.hpp"

#include <cstddef>
#include <utility>

#include <lightq/base/limits.hpp>
#include <lightq/protocol/json_schema.hpp>

namespace lightq::broker {

namespace {

using protocol::detail::ObjectSchema;

/// Returns the schema of a variable in a path.
Document schema_of_variable(std::string_view name) {
  if (name == "user_id") return ObjectSchema::text(1, limits::user_id_bytes_max);
  if (name == "lease") return {{"type", "string"}, {"pattern", "^[0-9a-f]{16}$"}};
  return ObjectSchema::name();
}

Document path_parameters(std::string_view path) {
  Document parameters = Document::array();
  for (std::size_t at = path.find('{'); at != std::string_view::npos; at = path.find('{', at + 1)) {
    const std::string_view name = path.substr(at + 1, path.find('}', at) - at - 1);
    parameters.push_back(parameter(name, "path", schema_of_variable(name)));
    parameters.back()["required"] = true;
  }
  return parameters;
}

}  // namespace

Document reference(const std::string& to) {
  return {{"$ref", to}};
}

Document text_schema() {
  return {{"type", "string"}};
}

Document number_schema(std::uint64_t least, std::uint64_t most) {
  return ObjectSchema::number(least, most);
}

Document count_schema() {
  return {{"type", "integer"}, {"minimum", 0}};
}

Document choice_schema(const std::vector<std::string>& words) {
  return {{"type", "string"}, {"enum", words}};
}

Document list_schema(Document items) {
  return {{"type", "array"}, {"items", std::move(items)}};
}

Document object_schema(const std::vector<std::string>& required, Document properties) {
  Document schema{{"type", "object"}};
  if (!required.empty()) schema["required"] = required;
  schema["properties"] = std::move(properties);
  return schema;
}

Document parameter(std::string_view name, std::string_view where, Document schema) {
  return {{"name", name}, {"in", where}, {"schema", std::move(schema)}};
}

Document query_parameter(std::string_view name, Document schema) {
  return parameter(name, "query", std::move(schema));
}

Document response(std::string_view words, std::string_view type, Document schema) {
  Document content;
  content[std::string(type)] = {{"schema", std::move(schema)}};
  return {{"description", words}, {"content", std::move(content)}};
}

void open_to_all(Document& operation) {
  operation["security"] = Document::array({{{"basic", Document::array()}}, Document::object()});
}

Document operation(std::string_view id, std::string_view path, unsigned status, Document schema) {
  Document document{{"operationId", id}, {"parameters", path_parameters(path)}};
  document["responses"][std::to_string(status)] = response("done", "application/json", std::move(schema));
  document["responses"]["default"] = reference("#/components/responses/Problem");
  return document;
}

}  // namespace lightq::broker
