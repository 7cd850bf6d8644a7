/// The passwords that came by the environment, which shows them no more. Layer: cli.
#pragma once

#include <map>
#include <string>

namespace lightq::cli {

/// Owns them until they are taken, and wipes the rest at its end. One thread.
class SecretEnvironment {
 public:
  SecretEnvironment() = default;
  SecretEnvironment(const SecretEnvironment&) = delete;
  SecretEnvironment& operator=(const SecretEnvironment&) = delete;
  ~SecretEnvironment();

  /// Moves LIGHTQ_PASSWORD, LIGHTQ_ADMIN_PASSWORD and LIGHTQ_NEW_PASSWORD out of the process's environment:
  /// their bytes there, which everybody with this account can read in /proc, are overwritten, and children
  /// are not given them. `for_broker`: LIGHTQ_ADMIN_PASSWORD stays, for the broker to do the same, and the
  /// others are not kept. To be called before there is another thread.
  void collect(bool for_broker);
  /// The variable's value, once; empty: there was none.
  std::string take(const std::string& name);

 private:
  std::map<std::string, std::string> found_;
};

}  // namespace lightq::cli
