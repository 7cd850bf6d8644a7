/// Parses TOML. The only file that uses toml++. Layer: broker.
#include "broker/settings/toml_file.hpp"

#include <toml++/toml.h>
#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

namespace lightq::broker {

namespace {

constexpr int levels_max = 3;

TomlPlace begin_of(const toml::source_region& region) {
  return {region.begin.line, region.begin.column};
}

std::vector<TomlValue> members_of(const toml::table& from, int levels) {
  std::vector<TomlValue> members;
  for (const auto& [key, node] : from) {
    TomlValue member{std::string(key.str()), {}, {}, begin_of(key.source()), begin_of(node.source()), {}};
    if (const auto* text = node.as_string()) {
      member.kind = TomlValue::Kind::text;
      member.text = text->get();
    } else if (const auto* number = node.as_integer()) {
      member.kind = TomlValue::Kind::number;
      member.text = std::to_string(number->get());
    } else if (const auto* boolean = node.as_boolean()) {
      member.kind = TomlValue::Kind::boolean;
      member.text = boolean->get() ? "true" : "false";
    } else if (const auto* inner = node.as_table()) {
      member.kind = TomlValue::Kind::table;
      if (levels > 1) member.members = members_of(*inner, levels - 1);
    }
    members.push_back(std::move(member));
  }
  std::ranges::sort(members, {}, [](const TomlValue& member) {
    return std::tuple(member.key.line, member.key.column, std::string_view(member.name));
  });
  return members;
}

}  // namespace

Result<std::vector<TomlValue>> parse_toml(std::string_view text, const std::string& name) {
  try {
    return members_of(toml::parse(text), levels_max);
  } catch (const toml::parse_error& error) {
    return Error{ErrorCode::invalid_argument,
                 text_of_place(name, begin_of(error.source())) + std::string(error.description())};
  }
}

std::string text_of_place(const std::string& file, TomlPlace place) {
  return file + ":" + std::to_string(place.line) + ":" + std::to_string(place.column) + ": ";
}

}  // namespace lightq::broker
