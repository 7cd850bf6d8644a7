/// Records the events of the data plane in the catalogue. Layer: control.
#pragma once

#include <cstdint>

#include "base/log_sink.hpp"
#include "control/catalogue/catalogue.hpp"
#include "control/catalogue/commit_queue.hpp"
#include "control/commands/data_plane.hpp"

namespace lightq::broker {

/// Records closed and moved endpoints and the logs of topics. A record that fails is reported to the sink.
/// Thread: the control thread. Lifetime: the references must outlive it.
class DataPlaneRecorder final : public DataPlaneObserver {
 public:
  DataPlaneRecorder(Catalogue& catalogue, CommitQueue& commits, LogSink& sink)
      : catalogue_(catalogue), commits_(commits), sink_(sink) {}

  void endpoint_closed(const EndpointRecord& record) override;
  void endpoint_changed(const EndpointRecord& record) override;
  void log_found(TopicId topic, std::uint32_t log_id) override;

 private:
  Catalogue& catalogue_;
  CommitQueue& commits_;
  LogSink& sink_;
};

}  // namespace lightq::broker
