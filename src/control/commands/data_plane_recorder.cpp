/// Records the events of the data plane in the catalogue. Layer: control.
#include "control/commands/data_plane_recorder.hpp"

#include <string>

namespace lightq::broker {

void DataPlaneRecorder::endpoint_closed(const EndpointRecord& record) {
  if (const auto removed = catalogue_.remove_endpoint(record.id); !removed) {
    sink_.error("cannot remove a closed endpoint from the catalogue: " + removed.error().text());
  }
  commits_.commit([](const Result<void>&) {});
}

void DataPlaneRecorder::endpoint_changed(const EndpointRecord& record) {
  if (const auto kept = catalogue_.put_endpoint(record); !kept) {
    sink_.error("cannot record an endpoint's new port in the catalogue: " + kept.error().text());
  }
  commits_.commit([](const Result<void>&) {});
}

void DataPlaneRecorder::log_found(TopicId topic, std::uint32_t log_id) {
  const TopicEntry* const entry = catalogue_.state().find(topic);
  if (entry == nullptr) return;
  const std::string where = "topic " + entry->definition.name.text() + ": ";
  if (const TopicEntry* const other = catalogue_.state().topic_of_log(log_id); other != nullptr) {
    sink_.error(where + "its files are those of topic " + other->definition.name.text() +
                ", or a copy of them");
    return;
  }
  if (const auto kept = catalogue_.set_log(topic, log_id); !kept)
    sink_.error(where + "cannot record the id of its log in the catalogue: " + kept.error().text());
  commits_.commit([](const Result<void>&) {});
}

}  // namespace lightq::broker
