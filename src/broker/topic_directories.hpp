/// The topics' directories, compared with the catalogue. Layer: broker.
#pragma once

#include <filesystem>
#include <vector>

#include <lightq/base/result.hpp>

#include "base/log_sink.hpp"
#include "control/catalogue/catalogue.hpp"

namespace lightq::broker {

/// Returns the topic ids that occur as names in `topics`, in ascending order. Errors: io_error, because an
/// unreadable directory may contain any topic.
Result<std::vector<TopicId>> topics_with_files(const std::filesystem::path& topics);

/// Deletes the files of topics that the catalogue lists as removed, because a deletion may have been
/// interrupted. Keeps and reports files of a topic that the catalogue does not know: it has lost that topic.
/// Errors: io_error if the removals cannot be made durable.
Result<void> remove_deleted_topics(const std::filesystem::path& topics, const std::vector<TopicId>& found,
                                   Catalogue& catalogue, LogSink& sink);

}  // namespace lightq::broker
