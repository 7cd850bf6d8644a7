/// Finds the handler of a request. Layer: http.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "http/http_request.hpp"
#include "http/http_response.hpp"
#include "net/request_source.hpp"

namespace lightq::broker {

/// Sends the response to a request. Call it exactly once. Thread: any.
using HttpReply = std::function<void(HttpResponse)>;

/// A request with all that its handler needs.
struct HttpExchange {
  HttpRequest request;
  std::vector<std::string> parts;  ///< of the path, decoded: the values of the route's {…}
  RequestSource source;            ///< where the request came from
  HttpReply reply;
  /// Ends the connection when the client has ended its side, before the response: for a request that waits.
  /// Empty: the request came over no connection. Thread: the HTTP thread.
  std::function<void()> watch_end = {};
  /// Sends further content of a stream, which is not empty. Behind the last part the connection ends. Does
  /// nothing once it has ended. Requires: the response's `taken` was called. Thread: the HTTP thread.
  std::function<void(std::string_view part, bool is_last)> send_more = {};
};

/// Calls the handler of the route that fits a request. A request that no route fits is answered with 404, or
/// with 405 if only its method does not fit. HEAD is answered as GET, by the connection without the content.
/// Thread: routes are added before requests are handled; then one.
class Router {
 public:
  using Handler = std::function<void(HttpExchange exchange)>;

  /// Adds a route. `pattern`: a path; a segment `{…}` fits any one segment that is not empty. Requires: no
  /// two routes of a method fit the same path.
  void add(std::string method, std::string_view pattern, Handler handler);
  void handle(HttpExchange exchange) const;

 private:
  struct Route {
    std::string method;
    std::vector<std::string> segments;
    Handler handler;
  };

  std::vector<Route> routes_;
};

}  // namespace lightq::broker
