/// Logins by HTTP Basic. Layer: http.
#include "http/basic_login.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <lightq/base/base64.hpp>
#include <lightq/base/limits.hpp>

#include "base/ascii_case.hpp"

namespace lightq::broker {

namespace {

constexpr std::string_view basic_scheme = "basic ";

bool has_scheme(std::string_view text) {
  return in_lower_case(text.substr(0, basic_scheme.size())) == basic_scheme;
}

}  // namespace

std::optional<protocol::Credentials> basic_credentials(const Secret& authorization) {
  std::string_view text = authorization.expose();
  if (!has_scheme(text)) return std::nullopt;
  text.remove_prefix(basic_scheme.size());
  while (text.starts_with(' ')) text.remove_prefix(1);
  auto decoded = from_base64(text);
  if (!decoded) return std::nullopt;
  const Secret whole(std::move(*decoded));
  const std::string_view pair = whole.expose();
  const std::size_t colon = pair.find(':');
  if (colon == std::string_view::npos || colon > limits::user_id_bytes_max ||
      pair.size() - colon - 1 > limits::password_bytes_max)
    return std::nullopt;
  return protocol::Credentials{std::string(pair.substr(0, colon)), Secret(pair.substr(colon + 1))};
}

}  // namespace lightq::broker
