/// The trace of one message of a topic. Layer: topic.
#include "topic/runtime/message_tracing.hpp"

#include <cstdint>
#include <new>
#include <string>

#include <lightq/base/batch.hpp>

#include "admission/memory_reserve.hpp"
#include "admission/turn_work.hpp"
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

}  // namespace

Result<MessageTracing::Then> MessageTracing::work(Topic& topic, TopicReads& reads,
                                                  const ClockReading& clocks) {
  const std::uint64_t work_from = TurnWork::bytes();
  if (!has_message_) {
    const auto read = read_message(topic, reads);
    if (!read) return read.error();
    if (!*read) return Then::readable;
    has_message_ = true;
  }
  const bool has_all = add_groups(topic, clocks, work_from);
  work_ += TurnWork::bytes() - work_from;
  return has_all ? Then::done : Then::next_turn;
}

/// Sets the members about the message itself. Returns false if it can be read only later.
Result<bool> MessageTracing::read_message(Topic& topic, TopicReads& reads) {
  const log::BatchLog& log = topic.log();
  if (log.next_offset() <= offset_)
    return Error{ErrorCode::invalid_request,
                 "offset: the topic has no message " + std::to_string(offset_.value) +
                     " yet; the next one gets offset " + std::to_string(log.next_offset().value)};
  protocol::MessageTrace& trace = traced_.trace;
  trace = {.topic = topic.definition().name.text(), .offset = offset_.value};
  RecordReader reader(offset_);
  OneMessageTurn turn(offset_, trace);
  const TurnEnd end = read_one(reads, reader, turn);
  if (end == TurnEnd::pending) return false;
  if ((end == TurnEnd::unavailable || end == TurnEnd::over) && !turn.has_taken())
    return Error{ErrorCode::io_error,
                 "message " + std::to_string(offset_.value) + " cannot be read now; try again"};
  is_readable_ = turn.has_taken();
  if (is_readable_) {
    trace.state =
        offset_ < log.first_offset() ? protocol::StoredState::carried : protocol::StoredState::stored;
    trace.durable =
        protocol::has_files(topic.definition().settings.broker_type) && offset_ < log.durable_offset();
  } else {
    trace.state =
        reader.loss().damaged != 0 ? protocol::StoredState::damaged : protocol::StoredState::dropped;
  }
  return true;
}

/// Adds the states of the message in further groups, for about a millisecond since `work_from`, but at least
/// one. Returns true if there are no more.
bool MessageTracing::add_groups(Topic& topic, const ClockReading& clocks, std::uint64_t work_from) {
  topic.groups().give_up_dropped();
  bool has_added = false;
  bool has_all = true;
  std::uint64_t left_out = 0;
  topic.groups().for_each([&](ConsumerGroup& group) {
    TurnWork::add(TurnWork::range_passed);
    if (visited_.contains(&group)) return;
    if (traced_.groups.size() >= protocol::MessageTrace::groups_max) {
      ++left_out;
    } else if (has_added && TurnWork::bytes() - work_from > turn_work_max_) {
      has_all = false;
    } else {
      traced_.groups.push_back(trace_in_group(group, offset_, is_readable_, clocks));
      visited_.insert(&group);
      has_added = true;
    }
  });
  traced_.trace.groups_left_out = left_out;
  return has_all;
}

}  // namespace lightq::broker
