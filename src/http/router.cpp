/// Finds the handler of a request. Layer: http.
#include "http/router.hpp"

#include <cstddef>
#include <optional>
#include <utility>

#include <lightq/base/shown_text.hpp>

#include "http/problem.hpp"

namespace lightq::broker {

namespace {

std::vector<std::string> segments_of(std::string_view path) {
  std::vector<std::string> segments;
  path.remove_prefix(path.starts_with('/') ? 1 : 0);
  while (true) {
    const std::size_t slash = path.find('/');
    segments.emplace_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return segments;
    path.remove_prefix(slash + 1);
  }
}

bool is_variable(const std::string& segment) {
  return segment.starts_with('{') && segment.ends_with('}');
}

/// Returns the values of the variables if the path fits; nothing otherwise.
std::optional<std::vector<std::string>> fit(const std::vector<std::string>& pattern,
                                            const std::vector<std::string>& path) {
  if (pattern.size() != path.size()) return std::nullopt;
  std::vector<std::string> values;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (is_variable(pattern[i]) && !path[i].empty()) {
      values.push_back(path[i]);
    } else if (pattern[i] != path[i]) {
      return std::nullopt;
    }
  }
  return values;
}

}  // namespace

void Router::add(std::string method, std::string_view pattern, Handler handler) {
  routes_.push_back({std::move(method), segments_of(pattern), std::move(handler)});
}

void Router::handle(HttpExchange exchange) const {
  const std::vector<std::string> path = exchange.request.segments.empty()
                                            ? segments_of(exchange.request.path)
                                            : std::move(exchange.request.segments);
  const std::string method = exchange.request.is_head() ? "GET" : exchange.request.method;
  std::string allowed;
  for (const Route& route : routes_) {
    auto parts = fit(route.segments, path);
    if (!parts) continue;
    if (route.method == method) {
      exchange.parts = std::move(*parts);
      return route.handler(std::move(exchange));
    }
    if (!allowed.empty()) allowed += ", ";
    allowed += route.method == "GET" ? "GET, HEAD" : route.method;
  }
  if (allowed.empty()) {
    return exchange.reply(problem(404, ErrorCode::invalid_cmd,
                                  "there is nothing at " + without_controls(exchange.request.path)));
  }
  HttpResponse response = problem(405, ErrorCode::invalid_cmd, "the method is not allowed here");
  response.headers.emplace_back("Allow", allowed);
  exchange.reply(std::move(response));
}

}  // namespace lightq::broker
