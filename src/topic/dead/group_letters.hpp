/// The outbox of a consumer group, for its transfer. Layer: topic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "topic/dead/letter_source.hpp"
#include "topic/runtime/topic_runtime.hpp"

namespace lightq::broker {

/// Returns the names of the topic's groups with messages that wait for their transfer.
[[nodiscard]] std::vector<std::string> groups_with_letters(TopicRuntime& topic);

/// Returns the outbox of the group `group`, which need not exist any more when the outbox is used. Lifetime:
/// the topic outlives the outbox.
[[nodiscard]] std::unique_ptr<LetterSource> letters_of_group(TopicRuntime& topic, const std::string& group);

}  // namespace lightq::broker
