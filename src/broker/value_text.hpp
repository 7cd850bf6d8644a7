/// The values of settings as texts, as a configuration file has them. Layer: broker.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "broker/config.hpp"

namespace lightq::broker {

/// Each returns the text that the setting's `set` accepts for the value; nothing if the value is not set.
inline std::optional<std::string> value_text(const std::string& value) {
  return value.empty() ? std::nullopt : std::optional(value);
}
inline std::optional<std::string> value_text(const std::filesystem::path& value) {
  return value_text(value.string());
}
inline std::optional<std::string> value_text(bool value) {
  return value ? "true" : "false";
}
inline std::optional<std::string> value_text(std::uint64_t value) {
  return std::to_string(value);
}
inline std::optional<std::string> value_text(std::chrono::milliseconds value) {
  return std::to_string(value.count());
}
inline std::optional<std::string> value_text(const std::optional<std::uint64_t>& value) {
  return value ? std::optional(std::to_string(*value)) : std::nullopt;
}
inline std::optional<std::string> value_text(const std::optional<PortRange>& value) {
  return value ? std::to_string(value->first) + "-" + std::to_string(value->last) : "any";
}
inline std::optional<std::string> value_text(LogLevel value) {
  switch (value) {
    case LogLevel::debug: return "debug";
    case LogLevel::info: return "info";
    case LogLevel::warn: return "warning";
    case LogLevel::error: return "error";
  }
  return std::nullopt;
}
/// For the address of HTTP, which is empty if HTTP is off.
inline std::optional<std::string> value_text(const std::optional<std::string>& value) {
  return value && value->empty() ? "off" : value;
}
inline std::optional<std::string> value_text(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : ",") + value;
  return value_text(text);
}

}  // namespace lightq::broker
