/// The `lightq` program: the command line, and the broker that `lightq broker` runs. Layer: apps.
#include <csignal>
#include <cstdlib>
#include <string_view>

#include <lightq/base/core_dumps.hpp>
#include <lightq/base/standard_streams.hpp>

#include "client/parser/command_line.hpp"

#if defined(LIGHTQ_WITH_BROKER)
#include "broker/broker_main.hpp"
#include "broker/config.hpp"
#include "broker/settings/config_report.hpp"
#endif

namespace {

lightq::cli::BrokerCommand broker_command() {
  lightq::cli::BrokerCommand command;
#if defined(LIGHTQ_WITH_BROKER)
  for (const lightq::broker::Setting& setting : lightq::broker::settings()) {
    command.flags.push_back(
        {setting.name, lightq::broker::environment_name(setting), setting.value, setting.help});
  }
  command.run = lightq::broker::run_broker;
  command.print_key = lightq::broker::print_broker_key;
  command.read_config = lightq::broker::report_config;
#endif
  return command;
}

bool core_dumps_wanted() {
  const char* const said = std::getenv("LIGHTQ_CORE_DUMPS");
  return said != nullptr && said == std::string_view("true");
}

}  // namespace

int main(int argc, char** argv) {
  // without standard streams there is nowhere to report why
  if (!lightq::reserve_standard_streams()) return EXIT_FAILURE;
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the file size limit then fails with EFBIG
  if (!core_dumps_wanted()) lightq::forbid_core_dumps();  // before the process holds secrets
  return lightq::cli::run_command_line(argc, argv, broker_command());
}
