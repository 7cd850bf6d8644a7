/// The settings of a broker's topics, groups and users as one JSON document. Layer: cli.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lightq/base/limits.hpp>
#include <lightq/base/result.hpp>
#include <lightq/protocol/control.hpp>

namespace lightq::cli {

/// The settings of a topic, and those of its groups that have any.
struct TopicDefinitions {
  std::string topic;
  protocol::TopicSettings settings;
  std::vector<std::pair<std::string, protocol::GroupSettings>> groups;
};

struct Definitions {
  static constexpr std::size_t bytes_max = 64 * limits::MiB;

  std::vector<TopicDefinitions> topics;
  std::vector<protocol::UserListing> users;
};

/// Returns the document, in one line or, for people, with a line for each member.
std::string definitions_text(const Definitions& definitions, bool is_one_line = false);

/// Reads such a document. It may come from anybody. Errors: request_too_large, invalid_json, invalid_request
/// (naming the member).
Result<Definitions> parse_definitions(std::string_view text);

/// One change that an import makes to a topic, group or user.
struct DefinitionsStep {
  enum class What {
    create_topic,
    set_topic,
    set_group,
    create_user,
    grant,
    conflict,  ///< it cannot be done, see `text`
  };
  What what = What::conflict;
  std::string text;  ///< for people: the topic, group or user, and the values
  std::string topic = {};
  std::string group = {};
  protocol::TopicSettings settings = {};
  protocol::TopicChange topic_change = {};
  protocol::GroupChange group_change = {};
  protocol::UserListing user = {};
};

constexpr std::string_view to_word(DefinitionsStep::What what) {
  constexpr std::string_view words[] = {"create_topic", "set_topic", "set_group",
                                        "create_user",  "grant",     "conflict"};
  return words[static_cast<std::size_t>(what)];
}

/// Returns the steps from the definitions of a broker to those of a document. Nothing is deleted. Topics come
/// first, then groups, which may name topics, and users last.
std::vector<DefinitionsStep> steps_to(const Definitions& wanted, const Definitions& present);

}  // namespace lightq::cli
