/// The table of settings that says which a reload changes at once, and which need a restart. Layer: broker.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <lightq/protocol/control.hpp>

#include "broker/config.hpp"

namespace lightq::broker {

/// When a changed setting takes effect.
enum class Effect {
  at_once,                   ///< with a reload
  at_once_if_encrypt_stays,  ///< with a reload that does not change `encrypt`, otherwise with a restart
  restart,
};

/// One setting: when it takes effect, and how to compare, copy and show its value.
struct ReloadRow {
  std::string_view name;  ///< that of the Setting
  Effect effect;
  bool (*is_same)(const Config& one, const Config& other);
  void (*copy)(const Config& from, Config& to);
  /// Returns the value as `Setting::set` accepts it; nothing if it is not set.
  std::optional<std::string> (*text)(const Config& config);
};

/// Returns a row for each of settings(), in their order.
std::span<const ReloadRow> reload_rows();

/// The effect of a reload on the settings in force, one by one.
struct ReloadPlan {
  Config config;                           ///< the settings that are in force after the reload
  std::vector<std::string> changed;        ///< the names of the settings with another value
  std::vector<std::string> needs_restart;  ///< the names of those that keep their value until a restart
};
ReloadPlan plan_reload(const Config& in_force, const Config& read);
/// Copies the settings that a reload may change, and writes no others, which other threads may read.
void take_reloadable(const Config& from, Config& to);

/// Returns a line for the log: `reload: changed: log_level; needs a restart: bind, ports`.
std::string reload_text(const protocol::ReloadReply& reply);

}  // namespace lightq::broker
