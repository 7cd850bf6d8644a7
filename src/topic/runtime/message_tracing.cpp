/// The trace of one message of a topic. Layer: topic.
#include "topic/runtime/message_tracing.hpp"

#include <cstdint>
#include <new>
#include <string>

#include <lightq/base/batch.hpp>

#include "admission/memory_reserve.hpp"
#include "delivery/record_reader.hpp"

namespace lightq::broker {

namespace {

std::uint64_t shown_us(Timestamp time) {
  return time.us > 0 ? static_cast<std::uint64_t>(time.us) : 0;
}

/// A turn that takes one message, and copies all of it but the payload.
class OneMessageTurn {
 public:
  OneMessageTurn(Offset offset, protocol::MessageTrace& trace) : offset_(offset), trace_(trace) {}

  [[nodiscard]] static bool has_budget() { return true; }
  [[nodiscard]] bool can_take() const { return !taken_; }
  [[nodiscard]] SliceLimits limits() const { return {.end = offset_ + 1, .records = 1}; }
  void take(SliceSource& source, DeliveredSlice& delivered) {
    const BatchSlice& slice = delivered.slice;
    const AttributeKinds kinds = slice.batch.kinds();
    const std::byte* const at = slice.records.data();
    const auto length = load_little_endian<std::uint32_t>(at);
    const ByteView message(at + sizeof length, length);
    const AttributesView attributes = AttributesView::trusted(kinds, message.data());
    trace_.stored_us = shown_us(slice.batch.append_time());
    trace_.time_us = shown_us(attributes.time());
    trace_.size = payload_of(kinds, message).size();
    trace_.key = attributes.key();
    for (const Header header : attributes.headers())
      trace_.headers.push_back({std::string(header.name), std::string(header.value)});
    trace_.expired = delivered.expired;
    taken_ = true;
    source.taken(1, record_bytes(length));
  }
  [[nodiscard]] bool has_taken() const { return taken_; }

 private:
  const Offset offset_;
  protocol::MessageTrace& trace_;
  bool taken_ = false;
};

/// Without memory the message is unavailable.
TurnEnd read_one(TopicReads& reads, RecordReader& reader, OneMessageTurn& turn) {
  const FallibleAllocations fallible;
  try {
    return reads.read(reader, turn);
  } catch (const std::bad_alloc&) {
    return TurnEnd::unavailable;
  }
}

/// Adds the states of the message in the topic's groups.
void add_groups(Topic& topic, Offset offset, bool is_readable, const ClockReading& clocks,
                TracedMessage& traced) {
  topic.groups().give_up_dropped();
  topic.groups().for_each([&](ConsumerGroup& group) {
    if (traced.groups.size() < protocol::MessageTrace::groups_max)
      traced.groups.push_back(trace_in_group(group, offset, is_readable, clocks));
    else
      ++traced.trace.groups_left_out;
  });
}

}  // namespace

Result<TracedMessage> trace_message(Topic& topic, TopicReads& reads, Offset offset,
                                    const ClockReading& clocks) {
  const log::BatchLog& log = topic.log();
  if (log.next_offset() <= offset)
    return Error{ErrorCode::invalid_request,
                 "offset: the topic has no message " + std::to_string(offset.value) +
                     " yet; the next one gets offset " + std::to_string(log.next_offset().value)};
  TracedMessage traced{.trace = {.topic = topic.definition().name.text(), .offset = offset.value}};
  RecordReader reader(offset);
  OneMessageTurn turn(offset, traced.trace);
  const TurnEnd end = read_one(reads, reader, turn);
  if (end == TurnEnd::pending) {
    traced.is_pending = true;
    return traced;
  }
  if ((end == TurnEnd::unavailable || end == TurnEnd::over) && !turn.has_taken())
    return Error{ErrorCode::io_error,
                 "message " + std::to_string(offset.value) + " cannot be read now; try again"};
  if (turn.has_taken()) {
    traced.trace.state =
        offset < log.first_offset() ? protocol::StoredState::carried : protocol::StoredState::stored;
    traced.trace.durable =
        protocol::has_files(topic.definition().settings.broker_type) && offset < log.durable_offset();
  } else {
    traced.trace.state =
        reader.loss().damaged != 0 ? protocol::StoredState::damaged : protocol::StoredState::dropped;
  }
  add_groups(topic, offset, turn.has_taken(), clocks, traced);
  return traced;
}

}  // namespace lightq::broker
