/// The directories of topics beside what the catalogue says. Layer: broker.
#pragma once

#include <filesystem>
#include <vector>

#include <lightq/base/result.hpp>

#include "broker/control/catalogue.hpp"
#include "broker/endpoint/log_sink.hpp"

namespace lightq::broker {

/// Returns the ids that name something in `topics`, in ascending order. Errors: io_error; what cannot be read
/// may hold any topic.
Result<std::vector<TopicId>> topics_with_files(const std::filesystem::path& topics);

/// Removes the files of topics that the catalogue says were removed; a deletion may not have come to its end.
/// Files of a topic that the catalogue does not know at all are kept and reported: it has lost that topic.
/// Errors: io_error if the removals cannot be made durable.
Result<void> remove_deleted_topics(const std::filesystem::path& topics, const std::vector<TopicId>& found,
                                   Catalogue& catalogue, LogSink& sink);

}  // namespace lightq::broker
