/// Opens a command's client, and explains its errors. Layer: cli.
#pragma once

#include <chrono>
#include <string>

#include <lightq/client.hpp>

#include "client/invocation.hpp"

namespace lightq::cli {

/// Connects with the settings of the command line, the environment and the broker's own files.
Result<Client> open_client(const Common& common);

/// Prints an error and advice, and returns the exit code for it. `topic` may be empty.
int fail(const Error& error, const std::string& topic = "");

/// Restores a producer or consumer that has lost its endpoint while the broker is running. Called from time
/// to time while no messages are transferred.
class Reconnector {
 public:
  /// Joins again if `handle` has been disconnected for two seconds and the broker answers. Returns only
  /// errors that make further attempts useless, such as a deleted topic.
  template <typename Handle>
  Result<void> tend(Client& client, Handle& handle) {
    const auto now = std::chrono::steady_clock::now();
    if (handle.connected()) {
      last_connected_ = now;
      return {};
    }
    if (now - last_connected_ < std::chrono::seconds(2)) return {};
    if (!client.ping()) return {};
    last_connected_ = now;  // the next attempt is in two seconds
    const Result<void> joined = handle.rejoin();
    return joined || is_passing(joined.error()) ? Result<void>() : joined;
  }

  /// Returns true if a later attempt may succeed.
  static bool is_passing(const Error& error);

 private:
  std::chrono::steady_clock::time_point last_connected_ = std::chrono::steady_clock::now();
};

}  // namespace lightq::cli
