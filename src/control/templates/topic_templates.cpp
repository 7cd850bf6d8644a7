/// Chooses the template of a new topic. Layer: control.
#include "control/templates/topic_templates.hpp"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include <lightq/protocol/topic_pattern.hpp>

namespace lightq::broker {

namespace {

bool is_more_specific(const TopicTemplate& one, const TopicTemplate& other) {
  const auto rank = [](const std::string& pattern) {
    const auto stars = std::ranges::count(pattern, '*');
    return std::tuple(stars - std::ssize(pattern), stars, std::string_view(pattern));
  };
  return rank(one.pattern) < rank(other.pattern);
}

}  // namespace

TopicTemplates::TopicTemplates(std::vector<TopicTemplate> templates) : templates_(std::move(templates)) {
  std::ranges::sort(templates_, is_more_specific);
}

const TopicTemplate* TopicTemplates::find(std::string_view topic) const {
  const auto found = std::ranges::find_if(
      templates_, [topic](const TopicTemplate& each) { return protocol::fits_pattern(topic, each.pattern); });
  return found == templates_.end() ? nullptr : &*found;
}

Result<protocol::TopicSettings> settings_of_new_topic(const protocol::TopicSettings& requested,
                                                      protocol::GivenSettings given,
                                                      const TopicTemplate* from) {
  const auto is_from_template = [&](std::string_view name) {
    return from != nullptr && from->given.has(name) && !given.has(name);
  };
  protocol::TopicSettings settings;
  if (given.has("broker_type")) settings.broker_type = requested.broker_type;
  if (is_from_template("broker_type")) settings.broker_type = from->settings.broker_type;
  const protocol::BrokerType type = settings.broker_type;
  std::optional<Error> fault;
  protocol::visit_topic_settings([&](std::string_view name, auto member) {
    if (given.has(name)) settings.*member = requested.*member;
    if (is_from_template(name) && has_setting(type, name)) settings.*member = from->settings.*member;
    if (fault || !given.has(name) || has_setting(type, name)) return;
    fault = Error{ErrorCode::invalid_request, std::string(name) + ": only for broker_type " +
                                                  std::string(protocol::types_with_setting(name)) +
                                                  "; this topic would be a " + std::string(to_word(type))};
  });
  if (fault) return *fault;
  return settings;
}

}  // namespace lightq::broker
