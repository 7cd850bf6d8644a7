/// What is told of addresses and of users' names, in which somebody may have put a password. Layer: base.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lightq::inline v1 {

/// An address without what stands before an `@` where its host should begin: `tcp://...@HOST:PORT` of
/// `tcp://USER:PASSWORD@HOST:PORT`. Paths of Unix sockets stay as they are. Any thread.
inline std::string shown_uri(std::string_view uri) {
  if (uri.starts_with("ipc://")) return std::string(uri);
  const std::size_t scheme = uri.find("://");
  const std::size_t begin = scheme == std::string_view::npos ? 0 : scheme + std::string_view("://").size();
  const std::size_t at = uri.rfind('@');
  if (at == std::string_view::npos || at < begin) return std::string(uri);
  return std::string(uri.substr(0, begin)) + "..." + std::string(uri.substr(at));
}

/// A user's name without what stands behind a colon, as in `NAME:PASSWORD`. Any thread.
inline std::string shown_user(std::string_view name) {
  const std::size_t colon = name.find(':');
  return colon == std::string_view::npos ? std::string(name) : std::string(name.substr(0, colon)) + ":...";
}

}  // namespace lightq::inline v1
