/// A message that a client sends over HTTP. Layer: http.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <lightq/base/attributes.hpp>

namespace lightq::broker {

/// A message that a client sends, with the texts that its attributes refer to.
struct SentMessage {
  std::string payload;
  std::string key;
  std::string id;
  std::vector<std::pair<std::string, std::string>> headers;
  std::int64_t time_us = 0;
  std::int64_t ttl_ms = 0;
  std::int64_t delay_ms = 0;
  std::int64_t at_us = 0;

  [[nodiscard]] bool is_delayed() const { return delay_ms != 0 || at_us != 0; }
  /// Calls `use` with the attributes.
  template <typename Use>
  auto with_attributes(Use&& use) const {
    std::vector<Header> views;
    views.reserve(headers.size());
    for (const auto& [name, value] : headers) views.push_back({name, value});
    const Attributes attributes{.key = key,
                                .headers = views,
                                .time = {time_us},
                                .delay = std::chrono::milliseconds(delay_ms),
                                .deliver_at = {at_us},
                                .id = id,
                                .ttl = std::chrono::milliseconds(ttl_ms)};
    return use(attributes);
  }
};

}  // namespace lightq::broker
