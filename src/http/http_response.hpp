/// A response over HTTP. Layer: http.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace lightq::broker {

/// The status, headers and content of a response. The connection adds Date, Content-Length and Connection.
struct HttpResponse {
  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};  ///< further ones
};

}  // namespace lightq::broker
