/// Sends the messages of reads. Layer: session.
#include "session/read_queue.hpp"

#include <algorithm>
#include <string>

#include "admission/turn_work.hpp"
#include "session/slice_frames.hpp"

namespace lightq::broker {

namespace {
// The most bytes sent in one turn, so that other sessions get their share.
constexpr std::uint64_t turn_bytes = 256 * limits::KiB;

/// Returns the first records, with at most so many payload bytes, but at least `records_min` records.
BatchSlice front_of(const BatchSlice& slice, std::uint64_t message_bytes_max, std::uint32_t records_min) {
  BatchSlice front = slice;
  if (slice.message_bytes() <= message_bytes_max) return front;
  std::size_t bytes = 0;
  for (front.count = 0; front.count < slice.count; ++front.count) {
    const auto length = load_little_endian<std::uint32_t>(slice.records.data() + bytes);
    if (front.count >= records_min && length > message_bytes_max) break;
    message_bytes_max -= std::min<std::uint64_t>(message_bytes_max, length);
    bytes += record_bytes(length);
  }
  front.records = slice.records.first(bytes);
  return front;
}

}  // namespace

void ReadQueue::add(const TopicRuntime& topic, const session::Read& asked, std::uint32_t request) {
  jobs_.push_back({topic.definition().id, request, RecordReader(asked.range.begin), asked.range.end,
                   std::min(asked.bytes, limits_.bytes_max)});
}

void ReadQueue::go_on() {
  std::uint64_t bytes = 0;
  while (wants_room() && port_.has_room()) {
    if (bytes >= turn_bytes) return port_.work_soon();
    if (!port_.has_turn()) return;
    const std::uint64_t work_from = TurnWork::bytes();
    if (step(jobs_.front(), bytes)) jobs_.pop_front();
    port_.spend(TurnWork::bytes() - work_from);
  }
}

void ReadQueue::end_unpermitted() {
  if (waits_for_) {  // the first read may end; if not, it asks again
    stop_waiting();
    port_.work_soon();
  }
  std::erase_if(jobs_, [this](const Job& job) {
    TopicRuntime* const topic = port_.find_topic(job.topic);
    if (topic == nullptr) return false;
    const std::string& name = topic->definition().name.text();
    if (port_.permitted(name, EndpointRole::pull, GroupScope::of({})) == topic) return false;
    if (port_.permitted(name, EndpointRole::sub, GroupScope::of({})) == topic) return false;
    return fail(job, session::Code::unauthorized_access, "the right to consume was revoked");
  });
}

/// Continues a read. Returns true if it is fully answered.
bool ReadQueue::step(Job& job, std::uint64_t& bytes) {
  TopicRuntime* const topic = port_.find_topic(job.topic);
  if (topic == nullptr) return fail(job, session::Code::topic_deleted, "the topic is deleted");
  const Offset from = job.walk.offset();
  const Offset end = std::min(job.end, topic->next_offset());
  if (from >= end || (job.begun && job.bytes_left == 0)) return answer(job, from);
  const auto slice = topic->read_slice(job.walk, end, job.bytes_left, port_.client_codecs());
  if (!slice && job.walk.pending()) {
    topic->await_readable(*this);
    waits_for_ = job.topic;
    return false;
  }
  if (!slice && !job.begun && job.walk.unavailable() != nullptr)
    return fail(job, session::Code::io_error, "the messages cannot be read now; ask again");
  if (!slice) return answer(job, job.walk.offset());
  // Only the first message of a read is sent even if it exceeds the byte limit.
  const BatchSlice wanted = front_of(*slice, job.bytes_left, job.begun ? 0 : 1);
  const WalkLoss& loss = job.walk.loss();
  const std::uint64_t lost = loss.trimmed + loss.damaged - job.lost_told;
  const auto sent =
      deliver_slice(port_, wanted, {.channel = 0, .request = job.request, .delivery = 0, .lost = lost});
  const bool too_large = sent < wanted.count;
  if (too_large && !job.begun && sent == 0)
    return fail(job, session::Code::too_large, "a message is longer than the client accepts");
  if (too_large || wanted.count < slice->count) return answer(job, slice->range().begin + sent);
  job.begun = true;
  job.lost_told += lost;
  job.bytes_left -= std::min(job.bytes_left, wanted.message_bytes());
  bytes += wanted.stored_bytes();
  return false;
}

void ReadQueue::readable() {
  waits_for_.reset();
  port_.work_soon();
}

void ReadQueue::stop_waiting() {
  if (!waits_for_) return;
  if (TopicRuntime* const topic = port_.find_topic(*waits_for_)) topic->forget_readable(*this);
  waits_for_.reset();
}

bool ReadQueue::answer(const Job& job, Offset next) {
  port_.send(session::Done{next.value}, 0, job.request);
  return true;
}

bool ReadQueue::fail(const Job& job, session::Code code, const char* why) {
  port_.send(session::ErrorAnswer{code, why}, 0, job.request);
  return true;
}

}  // namespace lightq::broker
