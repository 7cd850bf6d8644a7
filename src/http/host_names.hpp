/// Checks the address of a request, and the page that has made it. Layer: http.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "http/http_request.hpp"
#include "http/http_response.hpp"

namespace lightq::broker {

/// The names under which this broker's HTTP is reached. A page in a browser can make the browser send
/// requests here: by a name of its own that resolves to this address (DNS rebinding), or across origins. So a
/// request must name an address, `localhost` or one of these names in Host, and its Origin, if it has one,
/// must be the same. Under /api/ it must not come from another site's page, which browsers say in
/// Sec-Fetch-Site. Immutable. Thread: any.
class HostNames {
 public:
  /// `names`: besides addresses and `localhost`; without ports.
  explicit HostNames(const std::vector<std::string>& names);

  /// Returns the response that refuses the request; nothing if it is addressed to this broker.
  [[nodiscard]] std::optional<HttpResponse> refusal_of(const HttpRequest& request) const;

 private:
  [[nodiscard]] bool knows(std::string_view host) const;

  std::set<std::string, std::less<>> names_;  // in lower case
};

/// Splits `NAME`, `NAME:PORT`, `[ADDRESS]` or `[ADDRESS]:PORT` and returns the name or address in lower case.
/// Nothing if the text has another form.
std::optional<std::string> host_without_port(std::string_view text);

}  // namespace lightq::broker
