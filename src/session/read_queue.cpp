/// Sends the messages of reads. Layer: session.
#include "session/read_queue.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "admission/turn_work.hpp"
#include "delivery/dispatch_turn.hpp"
#include "session/slice_frames.hpp"

namespace lightq::broker {

namespace {
// The most bytes sent in one turn, so that other sessions get their share.
constexpr std::uint64_t turn_bytes = 256 * limits::KiB;

/// Returns the first records, with at most so many payload bytes, but at least `records_min` records.
/// Requires: a batch that is taken whole has no more bytes than that.
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

/// A turn of one read. See dispatch_turn. Lifetime: everything that it refers to outlives it.
class ReadQueue::ReadTurn {
 public:
  /// `bytes`: the bytes that the session has sent in the turn; the turn adds to them.
  ReadTurn(FrameOutput& output, Host& host, Job& job, std::uint64_t& bytes)
      : output_(output), host_(host), job_(job), bytes_(bytes) {}
  ReadTurn(const ReadTurn&) = delete;
  ReadTurn& operator=(const ReadTurn&) = delete;
  ~ReadTurn() { pay(); }

  [[nodiscard]] bool has_budget() {
    pay();
    return !can_take() || (bytes_ < turn_bytes && host_.has_turn());
  }
  [[nodiscard]] bool can_take() const { return !next_ && !too_large_ && output_.has_room(); }
  [[nodiscard]] SliceLimits limits() const {
    if (job_.bytes_left > 0 || job_.begun)
      return {.end = job_.end, .message_bytes = job_.bytes_left, .codecs = output_.client_codecs()};
    // The first message of a read is sent even if it exceeds the byte limit. It is unpacked: a whole batch
    // could not be cut to one message.
    return {.end = job_.end, .message_bytes = 1};
  }
  void take(SliceSource& source, const DeliveredSlice& delivered) {
    const BatchSlice wanted = front_of(delivered.slice, job_.bytes_left, job_.begun ? 0 : 1);
    const auto sent = deliver_slice(output_, wanted,
                                    {.channel = 0,
                                     .request = job_.request,
                                     .delivery = 0,
                                     .lost = source.take_untold_loss(job_.lost_told),
                                     .expired = delivered.expired});
    too_large_ = sent == 0 && wanted.count > 0 && !job_.begun;
    if (sent < delivered.slice.count) {
      next_ = delivered.slice.range().begin + sent;
      return;
    }
    source.taken(wanted.count, wanted.records.size());
    job_.begun = true;
    job_.bytes_left -= std::min(job_.bytes_left, wanted.message_bytes());
    bytes_ += wanted.stored_bytes();
  }

  /// Returns true if the first message is longer than the client accepts.
  [[nodiscard]] bool is_too_large() const { return too_large_; }
  /// Returns the offset with which the read ends because it may not have the next message. Returns nothing if
  /// it may continue.
  [[nodiscard]] std::optional<Offset> next() const { return next_; }

 private:
  /// Charges the work since the last call to the session.
  void pay() {
    const std::uint64_t work = TurnWork::bytes();
    host_.spend(work - std::exchange(work_from_, work));
  }

  FrameOutput& output_;
  Host& host_;
  Job& job_;
  std::uint64_t& bytes_;
  std::uint64_t work_from_ = TurnWork::bytes();
  bool too_large_ = false;
  std::optional<Offset> next_;
};

void ReadQueue::add(const TopicRuntime& topic, const session::Read& asked, std::uint32_t request) {
  jobs_.push_back({topic.definition().id, request, RecordReader(asked.range.begin), asked.range.end,
                   std::min(asked.bytes, limits_.bytes_max)});
}

void ReadQueue::go_on() {
  std::uint64_t bytes = 0;
  while (wants_room() && output_.has_room()) {
    if (bytes >= turn_bytes) return host_.work_soon();
    if (!host_.has_turn()) return;
    if (step(jobs_.front(), bytes)) jobs_.pop_front();
  }
}

void ReadQueue::end_unpermitted() {
  if (waits_for_) {  // the first read may end; if not, it asks again
    stop_waiting();
    host_.work_soon();
  }
  std::erase_if(jobs_, [this](const Job& job) {
    TopicRuntime* const topic = host_.find_topic(job.topic);
    if (topic == nullptr) return false;
    const std::string& name = topic->definition().name.text();
    if (host_.permitted(name, EndpointRole::pull, GroupScope::of({})) == topic) return false;
    if (host_.permitted(name, EndpointRole::sub, GroupScope::of({})) == topic) return false;
    return fail(job, session::Code::unauthorized_access, "the right to consume was withdrawn");
  });
}

/// Continues a read. Returns true if it is fully answered.
bool ReadQueue::step(Job& job, std::uint64_t& bytes) {
  TopicRuntime* const topic = host_.find_topic(job.topic);
  if (topic == nullptr) return fail(job, session::Code::topic_deleted, "the topic is deleted");
  ReadTurn turn(output_, host_, job, bytes);
  const TurnEnd end = topic->reads().read(job.reader, turn);
  if (turn.is_too_large())
    return fail(job, session::Code::too_large, "a message is longer than the client accepts");
  if (turn.next()) return answer(job, *turn.next());
  switch (end) {
    case TurnEnd::over:
    case TurnEnd::no_consumer: return false;
    case TurnEnd::pending:
      topic->reads().await(*this);
      waits_for_ = job.topic;
      return false;
    case TurnEnd::unavailable:
      if (!job.begun) return fail(job, session::Code::io_error, "the messages cannot be read now; ask again");
      break;
    case TurnEnd::no_message: break;
  }
  return answer(job, job.reader.offset());
}

void ReadQueue::readable() {
  waits_for_.reset();
  host_.work_soon();
}

void ReadQueue::stop_waiting() {
  if (!waits_for_) return;
  if (TopicRuntime* const topic = host_.find_topic(*waits_for_)) topic->reads().forget(*this);
  waits_for_.reset();
}

bool ReadQueue::answer(const Job& job, Offset next) {
  output_.send(session::Done{next.value}, 0, job.request);
  return true;
}

bool ReadQueue::fail(const Job& job, session::Code code, const char* why) {
  output_.send(session::ErrorAnswer{code, why}, 0, job.request);
  return true;
}

}  // namespace lightq::broker
