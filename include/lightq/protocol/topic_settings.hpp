/// The settings of a topic, as the control protocol has them. docs/protocol.md, "create_topic". Layer:
/// protocol.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <lightq/base/limits.hpp>

namespace lightq::inline v1::protocol {

/// The kind of a topic, `broker_type` on the wire. Wire words: queue, file, direct, queue_file.
enum class BrokerType {
  queue,       ///< transient: an in-memory ring
  file,        ///< durable: segment files
  direct,      ///< no log: messages go to the consumers that are connected now
  queue_file,  ///< served from memory, written to segment files later
};

/// The overflow policy: the rule for a message that does not fit into a full log. Wire words: block, reject,
/// drop_oldest.
enum class Overflow { block, reject, drop_oldest };

/// The settings that a topic is created with. 0 means "no limit" for capacity and retention.
struct TopicSettings {
  BrokerType broker_type = BrokerType::queue;
  std::uint64_t ring_bytes = limits::ring_bytes_default;  ///< queue, queue_file: capacity in memory
  Overflow overflow = Overflow::block;
  std::uint64_t capacity_bytes = 0;      ///< file, queue_file: bytes on disk before overflow
  std::uint64_t retention_bytes = 0;     ///< file, queue_file: removes the oldest segments above it
  std::uint64_t retention_ms = 0;        ///< file, queue_file: removes segments older than this
  std::uint64_t retention_messages = 0;  ///< file, queue_file: removes the oldest segments above it
  std::uint64_t segment_bytes = limits::segment_bytes_default;  ///< file, queue_file
  bool open = false;                                            ///< accepts plain clients without a ticket
  bool encrypt_at_rest = false;                                 ///< file, queue_file: with the broker's key
  /// file, queue_file: retention also removes messages that wait in a group for a retry or a transfer, or are
  /// parked
  bool retention_over_pending = false;
  /// The time to live of all messages; 0: none. At most limits::ttl_ms_max. All types but direct.
  std::uint64_t message_ttl_ms = 0;
  friend bool operator==(const TopicSettings&, const TopicSettings&) = default;
};

/// Calls `visit` with the name of each setting and a pointer to its member.
template <typename Visit>
constexpr void visit_topic_settings(Visit&& visit) {
  visit("broker_type", &TopicSettings::broker_type);
  visit("overflow", &TopicSettings::overflow);
  visit("ring_bytes", &TopicSettings::ring_bytes);
  visit("capacity_bytes", &TopicSettings::capacity_bytes);
  visit("retention_bytes", &TopicSettings::retention_bytes);
  visit("retention_ms", &TopicSettings::retention_ms);
  visit("retention_messages", &TopicSettings::retention_messages);
  visit("retention_over_pending", &TopicSettings::retention_over_pending);
  visit("segment_bytes", &TopicSettings::segment_bytes);
  visit("open", &TopicSettings::open);
  visit("encrypt_at_rest", &TopicSettings::encrypt_at_rest);
  visit("message_ttl_ms", &TopicSettings::message_ttl_ms);
}

/// A set of names of settings: those that a request or a template gives. It leaves the others to defaults.
class GivenSettings {
 public:
  /// Adds a setting. Other names are ignored.
  constexpr void add(std::string_view name) { bits_ |= bit_of(name); }
  [[nodiscard]] constexpr bool has(std::string_view name) const { return (bits_ & bit_of(name)) != 0; }
  friend bool operator==(const GivenSettings&, const GivenSettings&) = default;

 private:
  static constexpr std::uint32_t bit_of(std::string_view name) {
    std::uint32_t found = 0;
    std::uint32_t bit = 1;
    visit_topic_settings([&](std::string_view setting, auto) {
      if (setting == name) found = bit;
      bit <<= 1U;
    });
    return found;
  }

  std::uint32_t bits_ = 0;
};

/// A change of a topic's settings: those that are given. The others of TopicSettings do not change.
/// The settings that a topic is created with and that are missing here are fixed.
struct TopicChange {
  std::optional<std::uint64_t> message_ttl_ms = {};  ///< 0: none
  std::optional<Overflow> overflow = {};
  // Only for topics with files; see has_files.
  std::optional<std::uint64_t> capacity_bytes = {};      ///< 0: no limit
  std::optional<std::uint64_t> retention_bytes = {};     ///< 0: keep
  std::optional<std::uint64_t> retention_ms = {};        ///< 0: keep
  std::optional<std::uint64_t> retention_messages = {};  ///< 0: keep
  std::optional<bool> retention_over_pending = {};

  [[nodiscard]] bool empty() const { return *this == TopicChange(); }
  /// Returns true if a setting is given that only topics with files have.
  [[nodiscard]] bool is_about_files() const {
    return capacity_bytes || retention_bytes || retention_ms || retention_messages || retention_over_pending;
  }
  /// Returns `settings` with the given ones replaced.
  [[nodiscard]] TopicSettings applied_to(TopicSettings settings) const {
    settings.message_ttl_ms = message_ttl_ms.value_or(settings.message_ttl_ms);
    settings.overflow = overflow.value_or(settings.overflow);
    settings.capacity_bytes = capacity_bytes.value_or(settings.capacity_bytes);
    settings.retention_bytes = retention_bytes.value_or(settings.retention_bytes);
    settings.retention_ms = retention_ms.value_or(settings.retention_ms);
    settings.retention_messages = retention_messages.value_or(settings.retention_messages);
    settings.retention_over_pending = retention_over_pending.value_or(settings.retention_over_pending);
    return settings;
  }
  friend bool operator==(const TopicChange&, const TopicChange&) = default;
};

/// Returns true if topics of this type keep messages in a memory ring, so that `ring_bytes` applies.
constexpr bool has_ring(BrokerType type) {
  return type == BrokerType::queue || type == BrokerType::queue_file;
}
/// Returns true if topics of this type have segment files, so that capacity, retention and `segment_bytes`
/// apply.
constexpr bool has_files(BrokerType type) {
  return type == BrokerType::file || type == BrokerType::queue_file;
}
/// Returns true if topics of this type have a log that can be full, so that `overflow` applies.
constexpr bool has_log(BrokerType type) {
  return type != BrokerType::direct;
}

/// Returns true if topics of this type have the setting of this name.
constexpr bool has_setting(BrokerType type, std::string_view name) {
  if (name == "broker_type" || name == "open") return true;
  if (name == "ring_bytes") return has_ring(type);
  if (name == "overflow" || name == "message_ttl_ms") return has_log(type);
  return has_files(type);
}
/// Returns the types of topics that have the setting of this name, as a list of their words.
constexpr std::string_view types_with_setting(std::string_view name) {
  if (has_setting(BrokerType::direct, name)) return "queue, file, direct, queue_file";
  if (!has_setting(BrokerType::file, name)) return "queue, queue_file";
  return has_setting(BrokerType::queue, name) ? "queue, file, queue_file" : "file, queue_file";
}

constexpr std::string_view to_word(BrokerType type) {
  constexpr std::string_view words[] = {"queue", "file", "direct", "queue_file"};
  return words[static_cast<int>(type)];
}
constexpr std::string_view to_word(Overflow overflow) {
  constexpr std::string_view words[] = {"block", "reject", "drop_oldest"};
  return words[static_cast<int>(overflow)];
}

}  // namespace lightq::inline v1::protocol
