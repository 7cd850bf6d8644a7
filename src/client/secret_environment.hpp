/// Takes passwords out of the process's environment, so that they are not visible there. Layer: cli.
#pragma once

#include <map>
#include <string>

#include <lightq/base/secret.hpp>

namespace lightq::cli {

/// Owns the passwords until they are taken. For one thread.
class SecretEnvironment {
 public:
  /// Moves LIGHTQ_PASSWORD, LIGHTQ_ADMIN_PASSWORD and LIGHTQ_NEW_PASSWORD out of the process's environment.
  /// Overwrites their bytes, which every process of this account can read in /proc; child processes do not
  /// get them. With `for_broker`, LIGHTQ_ADMIN_PASSWORD stays, because the broker collects it itself, and the
  /// others are not kept. Requires: no other thread exists yet.
  void collect(bool for_broker);
  /// Returns and forgets the variable's value; empty if it was not set.
  Secret take(const std::string& name);

 private:
  std::map<std::string, Secret> found_;
};

}  // namespace lightq::cli
