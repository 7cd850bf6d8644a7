/// Groups and their settings as JSON. Layer: cli.
#pragma once

#include <string>

#include <lightq/protocol/group_control.hpp>
#include <lightq/protocol/stats.hpp>

#include "client/json_text.hpp"

namespace lightq::cli {

/// Adds all settings of a group, with the names that the command `set_group` has.
void add_group_settings(JsonObject& to, const protocol::GroupSettings& settings);

/// Returns a group's statistics as an object, as the reply of the command `stats` has it.
std::string group_json(const protocol::GroupStats& group);

}  // namespace lightq::cli
