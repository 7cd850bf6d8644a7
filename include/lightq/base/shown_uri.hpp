/// Removes passwords from addresses and user names that are shown. Layer: base.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lightq::inline v1 {

/// Returns an address without user and password: replaces everything between `://` and the last `@` by `...`.
/// For `tcp://USER:PASSWORD@HOST:PORT`, returns `tcp://...@HOST:PORT`. Leaves paths of Unix sockets
/// unchanged. Thread: any.
inline std::string shown_uri(std::string_view uri) {
  if (uri.starts_with("ipc://")) return std::string(uri);
  const std::size_t scheme = uri.find("://");
  const std::size_t begin = scheme == std::string_view::npos ? 0 : scheme + std::string_view("://").size();
  const std::size_t at = uri.rfind('@');
  if (at == std::string_view::npos || at < begin) return std::string(uri);
  return std::string(uri.substr(0, begin)) + "..." + std::string(uri.substr(at));
}

/// Returns a user's name without the part after a colon: `NAME:...` for `NAME:PASSWORD`. Thread: any.
inline std::string shown_user(std::string_view name) {
  const std::size_t colon = name.find(':');
  return colon == std::string_view::npos ? std::string(name) : std::string(name.substr(0, colon)) + ":...";
}

}  // namespace lightq::inline v1
