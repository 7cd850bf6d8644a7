/// Parses JSON that holds secrets, without leaving copies of them in memory. Layer: protocol.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <lightq/base/result.hpp>
#include <lightq/base/wipe.hpp>
#include <lightq/protocol/json_fields.hpp>
#include <lightq/protocol/json_syntax.hpp>

namespace lightq::inline v1::protocol::detail {

/// Parses a text that holds secrets, as parse_object does. Afterwards only the returned object and `text`
/// hold the secrets. The caller wipes both (wipe_texts, wipe_stack). If the text is refused, only `text`
/// holds them.
///
/// The parser collects strings in two buffers. It lets them grow, frees them unwiped, and quotes a string in
/// which it finds a mistake. Therefore the text is checked first, and the parser only gets valid JSON. The
/// text is placed between two filler strings: the first makes the buffers large enough, the second overwrites
/// them.
inline Result<Json> parse_secrets(std::string_view text, std::size_t bytes_max) {
  if (auto fault = scan_json(text, bytes_max)) return *std::move(fault);
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  JsonSyntax syntax(text);
  if (!syntax.is_json()) return Error{ErrorCode::invalid_json, "the message is not valid JSON"};
  text = syntax.document();
  const std::string filler(syntax.longest_text(), 'x');
  std::string between;
  between.reserve(text.size() + 2 * filler.size() + sizeof R"(["",,""])");
  between.append(R"([")").append(filler).append("\",").append(text).append(",\"").append(filler).append(
      "\"]");
  Json parts;
  NameWatch watch(parts);
  const bool read = Json::sax_parse(between.begin(), between.end(), &watch);
  wipe_text(between);
  wipe_stack();
  if (!read || !parts.is_array()) return Error{ErrorCode::invalid_json, "the message is not valid JSON"};
  Json object = std::move(parts[1]);
  const bool good = object.is_object() && watch.repeated().empty();
  if (good) return object;
  const bool is_object = object.is_object();
  wipe_texts(object);
  if (!is_object) return Error{ErrorCode::invalid_cmd, "invalid_cmd"};
  return Error{ErrorCode::invalid_request, watch.repeated() + ": given more than once"};
}

}  // namespace lightq::inline v1::protocol::detail
