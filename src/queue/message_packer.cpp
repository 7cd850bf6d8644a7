/// Packs small messages into a batch at the end of a queue's log. Layer: queue.
#include "queue/message_packer.hpp"

#include <algorithm>

#include "log/elapsed.hpp"
#include "queue/clock.hpp"

namespace lightq::queue {

namespace {

const std::atomic<std::uint32_t> no_beat{CoarseClock::still};

constexpr std::size_t largest_packed_bytes = 4095;
constexpr std::int64_t batch_open_max_us = 10'000;  // keeps each message's time right to about 10 ms
// Records in a batch; with fewer, reading the clock costs little.
constexpr std::uint32_t beat_from_records = 32;

bool has_pulse(const QueueLog& log) {
  return log.is_mapped() && !log.options().many_writers && log.options().background;
}

}  // namespace

MessagePacker::MessagePacker(QueueLog& log)
    : packed_bytes_max_(std::min<std::uint64_t>(largest_packed_bytes, log.options().message_bytes_max)),
      pulse_(has_pulse(log) ? CoarseClock::shared() : nullptr),
      beat_(pulse_ != nullptr ? &pulse_->beat() : &no_beat),
      log_(log),
      boot_{log.storage().boot_id()} {}

bool MessagePacker::is_young() {
  if (log::has_passed(open_.opened(), batch_open_max_us, coarse_now())) return false;
  note_beat();
  return true;
}

// Notes that until the next beat the open batch is recent, without reading the clock.
void MessagePacker::note_beat() {
  const std::uint32_t beat = beat_->load(std::memory_order_relaxed);
  batch_beat_ = beat == CoarseClock::still ? no_beat_yet : beat;
}

void MessagePacker::end_beat() {
  batch_beat_ = no_beat_yet;
  pulse_->keep_beating();
}

void MessagePacker::open(const log::RoomInPlace& room, std::uint64_t records) {
  open_.begin(room.bytes, room.page, room.position, room.header, boot_, log_->next_offset(), coarse_now(),
              static_cast<std::uint32_t>(std::max<std::uint64_t>(records, 1)));
  note_beat();
}

void MessagePacker::close() {
  if (!open_.is_open()) return;
  if (pulse_ != nullptr && open_.count() >= beat_from_records) pulse_->keep_beating();
  log_->append_in_place(open_.finish());
}

}  // namespace lightq::queue
