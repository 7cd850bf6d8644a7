/// Templates that set defaults of new topics by their names. docs/configuration.md, "Topic templates". Layer:
/// control.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/protocol/topic_settings.hpp>

namespace lightq::broker {

/// The number of templates in a configuration file.
inline constexpr std::size_t topic_templates_max = 256;

/// Defaults for new topics whose name matches a pattern.
struct TopicTemplate {
  std::string pattern;  ///< see topic_pattern.hpp
  protocol::TopicSettings settings;
  protocol::GivenSettings given;  ///< the settings that the template sets
  friend bool operator==(const TopicTemplate&, const TopicTemplate&) = default;
};

/// All templates of a broker. At most one applies to a topic: the most specific one that matches its name.
///
/// A pattern with more characters besides `*` is more specific; of two with as many, the one with fewer `*`;
/// then the one that comes first in the order of bytes. So a pattern without `*` is the most specific one
/// that matches its name.
class TopicTemplates {
 public:
  TopicTemplates() = default;
  explicit TopicTemplates(std::vector<TopicTemplate> templates);

  /// Returns the template for a topic of this name; null if none matches. Lifetime: that of this object.
  [[nodiscard]] const TopicTemplate* find(std::string_view topic) const;

 private:
  std::vector<TopicTemplate> templates_;  // the most specific first
};

/// Returns the settings of a new topic: those that the request gives, then those of the template that apply
/// to the topic's type, then defaults. `from`: the template for the topic; null: none. Error: invalid_request
/// (the request gives a setting that the topic's type does not have).
Result<protocol::TopicSettings> settings_of_new_topic(const protocol::TopicSettings& requested,
                                                      protocol::GivenSettings given,
                                                      const TopicTemplate* from);

}  // namespace lightq::broker
