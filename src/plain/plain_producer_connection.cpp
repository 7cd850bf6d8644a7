/// Parses a producer's frames and publishes them in batches. Layer: plain.
#include "plain/plain_producer_connection.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "admission/turn_work.hpp"

namespace lightq::broker {

namespace {
// A longer frame is received into separate memory, which grows with the bytes that have arrived.
constexpr std::uint64_t large_frame_from = 64 * limits::KiB;
constexpr std::size_t large_kept_bytes_max = 1 * limits::MiB;
}  // namespace

std::size_t PlainProducerConnection::consume(std::span<std::byte> bytes) {
  std::size_t at = 0;
  while (!life().failed() && !paused() && take_frame(bytes, at) == Step::next) {
    TurnWork::add(TurnWork::frame_taken);
    if (input().turn_share().use_up()) break;
  }
  publish_batch();
  host_.published();
  return at;
}

PlainProducerConnection::Step PlainProducerConnection::take_frame(ByteView bytes, std::size_t& at) {
  if (skip_bytes_ > 0) {
    const auto skipped = static_cast<std::size_t>(std::min<std::uint64_t>(skip_bytes_, bytes.size() - at));
    at += skipped;
    skip_bytes_ -= skipped;
    if (skip_bytes_ > 0) return Step::wait;
  }
  zmtp::FrameHeader header;
  const auto outcome = zmtp::parse_frame_header(bytes.subspan(at), header);
  if (outcome == zmtp::FrameOutcome::incomplete) return Step::wait;
  if (outcome == zmtp::FrameOutcome::invalid) {
    life().fail("a malformed frame");
    return Step::wait;
  }
  if (!header.command) return take_message(bytes, at, header);
  if (header.body_bytes > zmtp::command_bytes_max) {
    life().fail("a command of " + std::to_string(header.body_bytes) + " bytes, above the maximum of " +
                std::to_string(zmtp::command_bytes_max));
    return Step::wait;
  }
  const std::size_t whole = header.header_bytes + static_cast<std::size_t>(header.body_bytes);
  if (bytes.size() - at < whole) return Step::wait;
  handle_command(bytes.subspan(at + header.header_bytes, whole - header.header_bytes));
  TurnWork::add(TurnWork::command_taken);
  at += whole;
  return Step::next;
}

PlainProducerConnection::Step PlainProducerConnection::take_message(ByteView bytes, std::size_t& at,
                                                                    const zmtp::FrameHeader& header) {
  if (!host_.accepting()) {
    hold();
    return Step::wait;
  }
  if (refuse(header)) {
    at += header.header_bytes;
    skip_bytes_ = header.body_bytes;
    return Step::next;
  }
  const auto body_bytes = static_cast<std::size_t>(header.body_bytes);
  const ByteView come = bytes.subspan(at + header.header_bytes);
  if (come.size() < body_bytes) {
    if (body_bytes <= large_frame_from) return Step::wait;
    if (!input().large_frame().begin(body_bytes, come)) life().fail_for_memory();
    at = bytes.size();
    return Step::wait;
  }
  if (!add(come.first(body_bytes))) return Step::wait;
  at += header.header_bytes + body_bytes;
  return Step::next;
}

/// Returns true if the message is refused: it has several parts, or is too large. All its parts are refused,
/// and it counts once.
bool PlainProducerConnection::refuse(const zmtp::FrameHeader& header) {
  if (in_refused_parts_ || header.more) {
    in_refused_parts_ = header.more;
    if (!header.more) host_.count_refused(1);
    return true;
  }
  if (header.body_bytes <= host_.message_bytes_max()) return false;
  host_.count_refused(1);
  return true;
}

/// Adds a payload to the batch. Returns false if there is no space and the payload was not taken.
bool PlainProducerConnection::add(ByteView payload) {
  BatchBuilder& batch = host_.batch();
  const bool full = batch.size_bytes() + record_bytes(payload.size()) > host_.batch_bytes_target() ||
                    batch.record_count() >= limits::batch_records_max;
  if (!batch.empty() && full && !publish_batch()) return false;
  return life().with_memory([&] { host_.batch().add(payload); });
}

/// Returns false if there was no space: the batch is kept until resume.
bool PlainProducerConnection::publish_batch() {
  BatchBuilder& batch = host_.batch();
  if (batch.empty()) return true;
  if (host_.publish(batch) == PublishOutcome::held) {
    keep_batch();
    return false;
  }
  batch.clear();
  return true;
}

/// Keeps the batch until resume, and stops reading.
void PlainProducerConnection::keep_batch() {
  pending_ = std::make_unique<BatchBuilder>(std::exchange(host_.batch(), BatchBuilder()));
  hold();
}

void PlainProducerConnection::hold() {
  set_paused(true);
  host_.inlet_held();
}

bool PlainProducerConnection::resume() {
  if (!paused()) return true;
  if (!host_.accepting()) return false;
  if (pending_ != nullptr) {
    if (host_.publish(*pending_) == PublishOutcome::held) return false;
    pending_.reset();
  }
  set_paused(false);
  loop().call_soon(*this);  // for bytes that were received and not parsed yet
  return true;
}

void PlainProducerConnection::large_frame_received(std::span<std::byte> body, std::size_t /*bytes*/) {
  if (body.empty()) return;
  add(body);
  LargeFrame& large = input().large_frame();
  if (large.memory_bytes() > large_kept_bytes_max) large.release_memory();
  if (host_.accepting()) {
    publish_batch();
  } else {
    keep_batch();
  }
  host_.published();
}

}  // namespace lightq::broker
