/// Checks the configuration without starting a broker. Layer: broker.
#include "broker/settings/config_report.hpp"

#include <vector>

#include "access/curve_key_file.hpp"
#include "access/tls_files.hpp"
#include "base/setting_error.hpp"
#include "broker/exposure.hpp"
#include "broker/settings/settings_reading.hpp"
#include "broker/wall_clock.hpp"
#include "crypto/storage_key_file.hpp"
#include "net/socket.hpp"

namespace lightq::broker {

namespace {

template <typename Checked>
void note(std::vector<Error>& faults, const Result<Checked>& checked) {
  if (!checked) faults.push_back(checked.error());
}

void check_addresses(const Config& config, std::vector<Error>& faults) {
  const auto address = resolve_host(config.bind_host);
  if (address) return note(faults, check_exposure(config, *address));
  faults.push_back(address.error());
  faults.back().message = "bind host: " + faults.back().message;
}

/// Reads the files that the settings name. Files of the data directory do not belong to the configuration.
void check_files(const Config& config, std::vector<Error>& faults) {
  if (config.encrypt && !config.tls_certificate.empty() && !config.tls_key.empty())
    note(faults, open_tls_context({config.tls_certificate, config.tls_key}, wall_clock_now()));
  if (config.encrypt && !config.allowed_client_keys.empty())
    note(faults, read_allowed_keys(config.allowed_client_keys));
  if (config.storage_key_file.empty()) return;
  const auto keys = rest::read_storage_keys(config.storage_key_file);
  if (!keys) faults.push_back(error_of_setting("storage_key_file", keys.error()));
}

}  // namespace

ConfigReport report_config(const std::map<std::string, std::string>& flag_overrides,
                           const std::optional<std::string>& config_file) {
  const Environment environment = start_environment();
  SettingsReading reading = read_settings(config_file, environment, flag_overrides);
  std::vector<Error>& faults = reading.faults;
  if (faults.empty()) {
    Config& config = reading.config;
    note(faults, read_admin_password(config, environment, {}));
    note(faults, check_tls(config));
    note(faults, check_storage_keys(config));
    check_addresses(config, faults);
    check_files(config, faults);
  }
  return {config_values(reading), std::move(reading.faults)};
}

}  // namespace lightq::broker
