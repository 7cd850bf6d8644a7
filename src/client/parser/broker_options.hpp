/// The flags of `lightq broker`. Included only by command_line.cpp, like command_options.hpp. Layer: cli.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "client/commands/broker_config.hpp"
#include "client/parser/command_line.hpp"
#include "client/parser/command_options.hpp"

namespace lightq::cli {

/// Returns the heading in the help under which a setting of the broker stands, by its name.
inline std::string heading_of_setting(std::string_view name) {
  using Words = std::initializer_list<std::string_view>;
  const auto is_one_of = [name](Words words) { return std::ranges::find(words, name) != words.end(); };
  const auto contains = [name](Words parts) {
    return std::ranges::any_of(parts, [name](std::string_view part) { return name.find(part) != name.npos; });
  };
  if (is_one_of(
          {"data_dir", "control", "bind", "advertise", "ports", "ipc_dir", "reactors", "stop_deadline_ms"}) ||
      name.starts_with("http"))
    return "Place and addresses";
  if (is_one_of({"open_topics", "encrypt", "allowed_client_keys", "insecure", "core_dumps", "ticket_ms"}) ||
      contains({"tls_", "storage_key", "admin_password", "rest"}))
    return "Security";
  if (name.starts_with("log_") || name.starts_with("audit_")) return "Log files";
  if (is_one_of({"min_free_bytes", "disk_bytes_max", "flush_interval_ms", "memory_bytes_max",
                 "ring_bytes_max", "decrypted_bytes_total"}))
    return "Disk and memory";
  if (is_one_of({"redelivery_ms_max", "processing_timeout_ms", "in_flight_messages_max",
                 "outstanding_ranges_max", "group_state_bytes_max", "message_bytes_max", "read_bytes_max"}))
    return "Messages and delivery";
  if (contains({"handshake", "accepts", "per_second", "idle", "quarantine", "heartbeat"}))
    return "Connections in time";
  return "Limits";
}

/// Adds `broker key`; returns nothing if this program has no broker.
inline const CLI::App* add_broker_key(CLI::App* verb, const BrokerCommand& broker, bool& json, bool& renews) {
  if (!broker.print_key) return nullptr;
  CLI::App* print =
      verb->add_subcommand("key", "print the public key by which clients recognise an encrypting broker");
  print->set_help_flag("-h,--help", "show this text");
  print->fallthrough();  // accepts the broker's own flags after the word, too
  print->footer(
      "The key is stored in the data directory, and is created if there is none yet: give the same "
      "--data-dir as to the broker.\n\nExamples:\n  lightq broker key\n  lightq broker key --data-dir "
      "./data\n  lightq broker key --renew && lightq reload\n  LIGHTQ_SERVER_KEY=KEY lightq ping --broker "
      "tcp://HOST:5000\n\nExit codes: 0 ok, 1 failed, "
      "2 wrong usage.");
  print->add_flag(
      "--renew", renews,
      "make a new key; after a reload the broker has it, and still accepts clients that know the former one, "
      "until the file curve_former.key in its data directory is removed and the broker reloads again; "
      "refused while there is such a file");
  add_json_document(print, json);
  return print;
}

/// Adds the flags that print or check the configuration. The result is set if one of them is given.
inline std::shared_ptr<std::optional<ConfigOutput>> add_config_output(CLI::App* verb,
                                                                      const BrokerCommand& broker,
                                                                      bool& json) {
  auto output = std::make_shared<std::optional<ConfigOutput>>();
  if (!broker.read_config) return output;
  CLI::Option* const check = verb->add_flag_callback(
      "--check-config", [output] { *output = ConfigOutput::verdict; },
      "check the configuration and the files that it names, and start nothing");
  CLI::Option* const print = verb->add_flag_callback(
      "--print-config", [output] { *output = ConfigOutput::values; },
      "print the configuration as TOML, each value with its source, and start nothing");
  print->excludes(check);
  verb->add_flag("--json", json, "with --check-config or --print-config: print JSON, for programs");
  return output;
}

/// Adds the verb `broker`. Lifetime: `broker` must outlive the parse.
inline void add_broker(CLI::App* app, Parsed& parsed, const BrokerCommand& broker) {
  CLI::App* verb = app->add_subcommand("broker", "run a broker");
  verb->set_help_flag("-h,--help", "show this text");
  verb->footer(
      "Without flags the broker runs on loopback with its default data directory. Flags override the "
      "environment, and the environment overrides the file.\n\nExamples:\n  lightq broker\n  lightq broker "
      "--data-dir ./data --control tcp://127.0.0.1:5000 --log-level debug\n  lightq broker --config "
      "lightq.toml --check-config\n\nSignals: SIGTERM and SIGINT "
      "stop "
      "the broker, SIGHUP makes it read its settings again (see  lightq reload), SIGUSR1 opens the log file "
      "again.\n\nExit codes: 0 stopped by a signal, 1 failed, 2 wrong usage.");
  auto file = std::make_shared<std::string>();
  text_option(verb, "--config", *file, "configuration file (TOML)", "FILE");
  auto overrides = std::make_shared<std::map<std::string, std::string>>();
  for (const BrokerFlag& each : broker.flags) {
    std::string name = "--" + each.name;
    std::ranges::replace(name, '_', '-');
    const std::string help = each.help + " " + Help::environment_note(each.environment);
    if (each.value.empty()) {
      verb->add_flag_callback(
              name, [overrides, key = each.name] { (*overrides)[key] = "true"; }, help)
          ->group(heading_of_setting(each.name));
      continue;
    }
    verb->add_option_function<std::string>(
            name, [overrides, key = each.name](const std::string& text) { (*overrides)[key] = text; }, help)
        ->type_name(each.value)
        ->group(heading_of_setting(each.name));
  }
  auto json_key = std::make_shared<bool>(false);
  auto json = std::make_shared<bool>(false);
  auto renews = std::make_shared<bool>(false);
  const CLI::App* const key = add_broker_key(verb, broker, *json_key, *renews);
  const auto output = add_config_output(verb, broker, *json);
  verb->callback([&parsed, &broker, overrides, file, key, output, json_key, json, renews] {
    parsed.is_broker = true;
    const bool prints_key = key != nullptr && key->parsed();
    if (*json && !prints_key && !*output)
      throw CLI::ValidationError("--json", "only with --check-config or --print-config");
    parsed.command = [&broker, overrides, file, prints_key, output, json_key, json, renews] {
      const auto config = file->empty() ? std::nullopt : std::optional(*file);
      if (prints_key) return broker.print_key(*overrides, config, *json_key || *json, *renews);
      if (!*output) return broker.run(*overrides, config);
      return run_broker_config(broker.read_config(*overrides, config), **output, *json);
    };
  });
}

}  // namespace lightq::cli
