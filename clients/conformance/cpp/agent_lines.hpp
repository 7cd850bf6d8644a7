/// The lines that an agent reads and writes: one JSON object each. Layer: agents.
#pragma once

#include <cstdint>
#include <iostream>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <lightq/base/error.hpp>
#include <lightq/base/result.hpp>
#include <lightq/options.hpp>

namespace lightq::agent {

using Json = nlohmann::json;

/// Writes one line to standard output, and flushes it: the driver may end the agent at any time after it.
inline void write_line(const Json& line) {
  std::cout << line.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n' << std::flush;
}

/// Returns the reply of a command that failed.
inline Json failed(const Error& error) {
  return {{"ok", false}, {"error", to_word(error.code)}, {"text", error.text()}};
}

/// Returns the reply of a command, with the members of `more`.
inline Json reply_of(const Result<void>& done, Json more = Json::object()) {
  Json reply = done ? Json{{"ok", true}} : failed(done.error());
  reply.update(more);
  return reply;
}

/// Returns a member of a command in milliseconds. Default: 10 s, or `otherwise`.
inline Timeout milliseconds_of(const Json& command, const char* name, std::int64_t otherwise = 10'000) {
  return Timeout(command.value(name, otherwise));
}

inline std::string text_of(const Json& command, const char* name) {
  return command.value(name, std::string());
}

}  // namespace lightq::agent
