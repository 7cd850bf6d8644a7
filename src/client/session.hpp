/// A command's client: found, logged in, its errors explained. Layer: cli.
#pragma once

#include <chrono>
#include <string>

#include <lightq/client.hpp>

#include "client/invocation.hpp"

namespace lightq::cli {

/// Connects as the command line, the environment and the broker's own files say.
Result<Client> open_client(const Common& common);

/// Says what went wrong, and what may help; answers the exit code for it. `topic` may be empty.
int fail(const Error& error, const std::string& topic = "");

/// Brings a producer or consumer back whose endpoint is gone though the broker is there. Called now and then
/// while nothing moves.
class Reconnector {
 public:
  /// Joins again when `handle` has been disconnected for two seconds and the broker answers. Errors: what
  /// makes going on senseless, such as a topic that was deleted.
  template <typename Handle>
  Result<void> tend(Client& client, Handle& handle) {
    const auto now = std::chrono::steady_clock::now();
    if (handle.connected()) {
      last_connected_ = now;
      return {};
    }
    if (now - last_connected_ < std::chrono::seconds(2)) return {};
    if (!client.ping()) return {};
    last_connected_ = now;  // another try in two seconds
    const Result<void> joined = handle.rejoin();
    return joined || is_passing(joined.error()) ? Result<void>() : joined;
  }

  /// Whether trying again later may help.
  static bool is_passing(const Error& error);

 private:
  std::chrono::steady_clock::time_point last_connected_ = std::chrono::steady_clock::now();
};

}  // namespace lightq::cli
