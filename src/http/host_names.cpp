/// Checks the address of a request, and the page that has made it. Layer: http.
#include "http/host_names.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstddef>

#include "base/ascii_case.hpp"
#include "http/problem.hpp"

namespace lightq::broker {

namespace {

bool is_port(std::string_view text) {
  return !text.empty() && text.size() <= 5 &&
         std::ranges::all_of(text, [](char each) { return each >= '0' && each <= '9'; });
}

bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char each) {
    return (each >= 'a' && each <= 'z') || (each >= '0' && each <= '9') || each == '.' || each == '-' ||
           each == '_';
  });
}

bool is_address(const std::string& host) {
  in_addr four{};
  in6_addr six{};
  return inet_pton(AF_INET, host.c_str(), &four) == 1 || inet_pton(AF_INET6, host.c_str(), &six) == 1;
}

}  // namespace

std::optional<std::string> host_without_port(std::string_view text) {
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view behind = text.substr(end + 1);
    if (!behind.empty() && (behind.front() != ':' || !is_port(behind.substr(1)))) return std::nullopt;
    std::string address = in_lower_case(text.substr(1, end - 1));
    return is_address(address) ? std::optional(std::move(address)) : std::nullopt;
  }
  const std::size_t colon = text.find(':');
  if (colon != std::string_view::npos && !is_port(text.substr(colon + 1))) return std::nullopt;
  std::string name = in_lower_case(text.substr(0, colon));
  return is_name(name) ? std::optional(std::move(name)) : std::nullopt;
}

HostNames::HostNames(const std::vector<std::string>& names) {
  for (const std::string& name : names) names_.insert(in_lower_case(name));
  names_.insert("localhost");
}

bool HostNames::knows(std::string_view host) const {
  return names_.contains(host) || host.ends_with(".localhost") || is_address(std::string(host));
}

std::optional<HttpResponse> HostNames::refusal_of(const HttpRequest& request) const {
  const auto host = host_without_port(request.host);
  if (!host) return problem(400, ErrorCode::invalid_request, "Host is not the name of a host");
  if (!knows(*host))
    return problem(
        421, ErrorCode::invalid_request,
        "Host is not an address, and not a name of this broker; the setting http_hosts adds names");
  // Browsers send no Origin with the requests of images and links, but say where these come from.
  const bool is_foreign = request.fetch_site == "cross-site" || request.fetch_site == "same-site";
  if (is_foreign && request.path.starts_with("/api/"))
    return problem(403, ErrorCode::unauthorized_access, "a page of another origin has made this request");
  if (request.origin.empty()) return std::nullopt;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (request.origin.starts_with(scheme) &&
        in_lower_case(request.origin.substr(scheme.size())) == in_lower_case(request.host))
      return std::nullopt;
  }
  return problem(403, ErrorCode::unauthorized_access, "a page of another origin has made this request");
}

}  // namespace lightq::broker
