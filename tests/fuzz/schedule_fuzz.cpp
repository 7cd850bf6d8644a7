/// Fuzz target: a schedule's log of any records. It is refused, or restored to messages that can be read,
/// moved and forgotten. A record that can be decoded encodes to the same bytes again.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <variant>
#include <vector>

#include "delayed/delayed_query.hpp"
#include "delayed/schedule.hpp"
#include "log/memory/ring_log.hpp"

namespace {

using namespace lightq;
using namespace lightq::broker;

void require(bool condition) {
  if (!condition) std::abort();
}

std::vector<std::byte> encoded(const PlanRecord& plan) {
  return encode_plan(plan.first_sequence, plan.log_offset, plan.numbers);
}
std::vector<std::byte> encoded(const DoneRecord& done) {
  return encode_done(done.sequences);
}
std::vector<std::byte> encoded(const CancelRecord& cancel) {
  return encode_cancel(cancel.numbers);
}
std::vector<std::byte> encoded(const DueRecord& due) {
  return encode_due(due.due_us, due.numbers);
}
std::vector<std::byte> encoded(const CopyRecord& copy) {
  return encode_copy(copy);
}

void check_record(ByteView bytes) {
  const auto decoded = decode_schedule_record(bytes);
  if (!decoded.record) return;
  const auto again = std::visit([](const auto& record) { return encoded(record); }, *decoded.record);
  require(std::ranges::equal(again, bytes));
}

/// Appends a batch of the broker with this record, or a producer's message.
void append_to(log::RingLog& log, ByteView bytes, bool is_message) {
  BatchBuilder builder;
  if (is_message) {
    builder.add(bytes, Attributes{.delay = std::chrono::microseconds(bytes.size())},
                AttributeKinds(AttributeKinds::dues));
  } else {
    builder.add(bytes);
  }
  const auto batch = builder.finish({.producer_id = is_message ? std::uint64_t{1} : 0});
  static_cast<void>(log.append(batch, {1'000}));
}

}  // namespace

// Each piece of the input is a length in one byte and that many bytes. The highest bit makes it a message.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ByteView left(reinterpret_cast<const std::byte*>(data), size);
  log::RingLog log({.capacity_bytes = 1 * limits::MiB});
  log::RingLog topic({.capacity_bytes = 1 * limits::MiB});
  while (!left.empty()) {
    const auto head = static_cast<std::uint8_t>(left[0]);
    const std::size_t bytes = std::min<std::size_t>(head & 127, left.size() - 1);
    const ByteView piece = left.subspan(1, bytes);
    left = left.subspan(1 + bytes);
    check_record(piece);
    append_to(log, piece, (head & 128) != 0);
  }
  Schedule schedule(log);
  if (!schedule.restore({topic, 9, 0, 0})) return 0;
  const std::size_t waiting = schedule.waiting().size();
  require(DelayedQuery(schedule, {}).list({}, 1'000).messages.size() <= waiting);
  const Timestamp late{INT64_MAX - 1'000'000};
  static_cast<void>(schedule.plan(late, {}));
  MoveBatch batch;
  while (schedule.take_due(batch, late, 4'096)) schedule.moved(batch, {}, late);
  require(schedule.waiting().size() <= waiting);
  static_cast<void>(schedule.maintain(late));
  return 0;
}
