/// A request over HTTP, parsed and checked. Layer: http.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lightq/base/secret.hpp>

#include "http/query.hpp"

namespace lightq::broker {

/// A request that has arrived completely. Plain data.
struct HttpRequest {
  std::string method;  ///< as sent, for example GET
  std::string path;    ///< decoded, begins with a slash
  /// The parts of the path between slashes, each decoded: %2F is a slash within a part. Empty: those of
  /// `path`.
  std::vector<std::string> segments;
  Query query;                ///< decoded
  std::string host;           ///< the value of Host, with its port if it has one
  std::string origin;         ///< the value of Origin; empty: there is none
  std::string accept;         ///< the values of Accept
  std::string fetch_site;     ///< the value of Sec-Fetch-Site, which browsers send; empty: there is none
  std::string last_event_id;  ///< the value of Last-Event-ID; empty: there is none
  std::string content_type;   ///< the value of Content-Type, without parameters, in lower case
  /// The headers that begin with `Lightq-`, with names in lower case and without that beginning.
  std::vector<std::pair<std::string, std::string>> fields;
  Secret authorization;  ///< the value of Authorization; empty: there is none
  std::string body;
  bool keep_alive = true;  ///< the client sends further requests on the connection
  /// Returns the value of the first header `Lightq-NAME`; empty if there is none. `name`: in lower case.
  [[nodiscard]] std::string_view field(std::string_view name) const {
    for (const auto& [each, value] : fields) {
      if (each == name) return value;
    }
    return {};
  }
  [[nodiscard]] bool is_head() const { return method == "HEAD"; }
};

}  // namespace lightq::broker
