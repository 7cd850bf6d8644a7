/// A request over HTTP, parsed and checked. Layer: http.
#pragma once

#include <string>

#include <lightq/base/secret.hpp>

#include "http/query.hpp"

namespace lightq::broker {

/// A request that has arrived completely. Plain data.
struct HttpRequest {
  std::string method;    ///< as sent, for example GET
  std::string path;      ///< decoded, begins with a slash
  Query query;           ///< decoded
  std::string host;      ///< the value of Host, with its port if it has one
  std::string origin;    ///< the value of Origin; empty: there is none
  std::string accept;    ///< the values of Accept
  Secret authorization;  ///< the value of Authorization; empty: there is none
  std::string body;
  bool keep_alive = true;  ///< the client sends further requests on the connection
  [[nodiscard]] bool is_head() const { return method == "HEAD"; }
};

}  // namespace lightq::broker
