/// Makes the store of a topic that a start has opened. Layer: topic.
#include "topic/found_topic.hpp"

#include <utility>

#include "log/memory/ring_log.hpp"
#include "store/durable_store.hpp"
#include "store/memory_store.hpp"
#include "store/tiered_store.hpp"

namespace lightq::broker {

namespace {

/// Returns the log as its own type. Requires: it is of that type.
template <typename LogType>
std::unique_ptr<LogType> release_as(std::unique_ptr<log::Log>& log) {
  return std::unique_ptr<LogType>(static_cast<LogType*>(log.release()));
}

}  // namespace

std::optional<Offset> FoundTopic::stored_cursor(std::string_view name) const {
  return log::offset_of_cursor(stored, name);
}

bool FoundTopic::was_closed() const {
  if (segments == nullptr) return false;
  return segments->recovery().closed_for_good || segments->recovery().segments == 0;
}

std::unique_ptr<TopicStore> FoundTopic::take_store(DiskThread& disk, EventLoop& loop) {
  if (segments == nullptr)
    return std::make_unique<MemoryStore>(release_as<log::RingLog>(log), std::move(carried));
  StateFiles files{directory.string(), std::move(cursor_file), std::move(*producer_file).take_slots()};
  if (write_behind == nullptr)
    return std::make_unique<FileStore>(release_as<log::SegmentLog>(log), std::move(files), disk, loop,
                                       std::move(carried_log));
  return std::make_unique<TieredStore>(release_as<log::WriteBehindLog>(log), *segments, std::move(files),
                                       disk, loop, std::move(carried_log));
}

}  // namespace lightq::broker
