/// Fuzzes the input of HTTP requests: head, body and query through the parser, and then all checks that read
/// what a client has sent. The result must not depend on the pieces in which the bytes arrive.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "http/basic_login.hpp"
#include "http/host_names.hpp"
#include "http/parameter_reader.hpp"
#include "http/request_parser.hpp"
#include "http/router.hpp"
#include "metrics/metric_text.hpp"

namespace {

using namespace lightq;
using namespace lightq::broker;

constexpr RequestLimits small{.head_bytes_max = 1024, .body_bytes_max = 1024};
constexpr std::size_t requests_max = 16;

void require(bool condition) {
  if (!condition) std::abort();
}

/// Returns all that the checks made of a request, as text.
std::string judged(HttpRequest request) {
  static const HostNames names({"broker.example"});
  static const Router router = [] {
    Router made;
    made.add("GET", "/metrics", [](const HttpExchange& exchange) { exchange.reply({.body = "metrics"}); });
    made.add("POST", "/topics/{topic}/messages",
             [](const HttpExchange& exchange) { exchange.reply({.body = exchange.parts.at(0)}); });
    return made;
  }();
  std::string text =
      request.method + " " + request.path + " " + request.body + (request.keep_alive ? "+" : "-");
  for (const std::string& segment : request.segments) text += "/" + segment;
  text += "#" + request.last_event_id;
  ParameterReader parameters(request.query, std::array<std::string_view, 3>{"from", "time_us", "max"});
  if (const auto place = parameters.place()) text += std::to_string(place->value);
  text += std::to_string(parameters.number("max", 1, 1000, 7));
  if (parameters.error()) text += parameters.error()->message;
  for (const auto& [name, value] : request.query.parameters()) text += "&" + name + "=" + value;
  constexpr std::array<std::string_view, 2> known = {"topic", "detail"};
  if (const auto objection = request.query.objection(known)) text += objection->message;
  if (const auto login = basic_credentials(request.authorization))
    text += login->user_id + ":" + login->password.expose();
  text += content_type_of(metric_format_of(request.accept));
  text += escaped_label(request.host) + escaped_label(request.origin);
  if (const auto refusal = names.refusal_of(request)) return text + refusal->body;
  bool is_answered = false;
  router.handle({std::move(request), {}, {}, [&](const HttpResponse& response) {
                   require(!is_answered);
                   is_answered = true;
                   text += std::to_string(response.status) + response.body;
                 }});
  require(is_answered);
  return text;
}

std::string read(std::string_view bytes, std::size_t piece) {
  RequestParser parser(small);
  std::string text;
  std::string waiting;
  std::size_t requests = 0;
  for (std::size_t at = 0; at < bytes.size() && parser.state() != RequestParser::State::refused;
       at += piece) {
    waiting += bytes.substr(at, piece);
    while (true) {
      const std::size_t taken = parser.feed(waiting);
      require(taken <= waiting.size());
      waiting.erase(0, taken);
      if (parser.state() != RequestParser::State::request) break;
      text += judged(parser.take_request()) + "\n";
      if (++requests == requests_max || waiting.empty()) break;
    }
    if (requests == requests_max) return text;
    if (parser.state() == RequestParser::State::more) require(waiting.size() <= small.head_bytes_max);
    (void)parser.take_wants_continue();
  }
  if (parser.state() == RequestParser::State::refused) text += std::to_string(parser.refusal().status);
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const std::size_t piece = std::size_t{data[0]} + 1;
  const std::string whole = read(bytes, std::max<std::size_t>(bytes.size(), 1));
  const std::string in_pieces = read(bytes, piece);
  // The requests and their results are equal, up to the first refusal. A line that is too long is refused
  // only if the parser sees it before its end.
  const std::string_view one = std::string_view(whole).substr(0, whole.rfind('\n') + 1);
  const std::string_view other = std::string_view(in_pieces).substr(0, in_pieces.rfind('\n') + 1);
  require(one.starts_with(other) || other.starts_with(one));
  return 0;
}
