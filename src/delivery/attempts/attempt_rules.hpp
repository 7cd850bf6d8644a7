/// A group's rules for messages that fail. Layer: delivery.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include <lightq/protocol/control.hpp>

namespace lightq::broker {

/// The settings of a group, and what follows from them. A plain value.
class AttemptRules {
 public:
  /// A number of attempts that no message reaches.
  static constexpr std::uint32_t unlimited = std::numeric_limits<std::uint32_t>::max();

  AttemptRules() = default;
  explicit AttemptRules(protocol::GroupSettings settings) : settings_(std::move(settings)) {}

  [[nodiscard]] const protocol::GroupSettings& settings() const { return settings_; }
  /// Returns true if messages that fail are treated as in a group without settings.
  [[nodiscard]] bool are_default() const {
    return settings_.max_attempts == 0 && settings_.backoff_ms.empty();
  }
  [[nodiscard]] bool limits_attempts() const { return settings_.max_attempts != 0; }
  /// Returns true if a message with so many attempts is dead.
  [[nodiscard]] bool is_dead(std::uint32_t attempts) const { return attempts >= dead_from(); }
  /// Returns the number of attempts from which on a message is dead.
  [[nodiscard]] std::uint32_t dead_from() const {
    return limits_attempts() ? settings_.max_attempts : unlimited;
  }
  /// Returns the number of attempts from which on a message is delivered alone.
  [[nodiscard]] std::uint32_t alone_from() const {
    return limits_attempts() ? std::max<std::uint32_t>(1, settings_.max_attempts / 2) : unlimited;
  }
  /// Returns the time after which a message is delivered again that has failed `attempts` times, at least
  /// once. `random`: any number; it determines the jitter of at most a tenth.
  [[nodiscard]] std::chrono::milliseconds backoff(std::uint32_t attempts, std::uint32_t random) const {
    const auto& steps = settings_.backoff_ms;
    if (steps.empty()) return std::chrono::milliseconds(0);
    const auto ms = std::int64_t{steps[std::min<std::size_t>(std::max(attempts, 1U), steps.size()) - 1]};
    constexpr std::int64_t parts = 2048;  // of a fifth
    return std::chrono::milliseconds(ms - ms / 10 + ms / 5 * (random % (parts + 1)) / parts);
  }

 private:
  protocol::GroupSettings settings_;
};

}  // namespace lightq::broker
