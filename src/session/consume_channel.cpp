/// Sends a consumer's slices, and tells its topic when it is writable. Layer: session.
#include "session/consume_channel.hpp"

#include <algorithm>
#include <utility>

#include "session/frame_translation.hpp"
#include "session/slice_frames.hpp"

namespace lightq::broker {

TopicConsumers::Refusal ConsumeChannel::open(const ConsumeRequest& asked, std::uint64_t user) {
  const auto refusal = topic_->open_consumer(asked, *this, user);
  if (refusal.code != ClientError::none) topic_ = nullptr;
  return refusal;
}

void ConsumeChannel::leave() {
  if (topic_ != nullptr) std::exchange(topic_, nullptr)->detach_consumer(*this);
}

void ConsumeChannel::fetch_ahead_for_input(unsigned step) const {
  if (topic_ == nullptr) return;
  if (step == 0) return topic_->fetch_ahead_fields();
  topic_->fetch_ahead_for_input(step - 1);
}

void ConsumeChannel::admitted(const Opened& opened) {
  admitted_ = true;
  link_.channel_opened(*this, {.next = opened.next.value,
                               .committed = opened.committed.value,
                               .next_offset = topic_->store().next_offset().value,
                               .incarnation = topic_->incarnation(),
                               .ack_timeout_ms = opened.ack_timeout_ms});
}

bool ConsumeChannel::writable() const {
  if (retired_) return false;
  if (port_.has_room()) return true;
  wants_room_ = true;
  link_.room_wanted();
  return false;
}

void ConsumeChannel::deliver(const DeliveredSlice& delivered) {
  const auto sent = deliver_slice(
      port_, delivered.slice,
      {.channel = number(), .request = 0, .delivery = delivered.delivery, .lost = delivered.lost});
  refused_ = delivered.slice.count - sent;
  if (refused_ == 0) return;
  retire();
  link_.message_too_large(*this);
}

void ConsumeChannel::late(const std::vector<OffsetRange>& ranges) {
  constexpr std::size_t ranges_max = session::ranges_body_bytes_max / (2 * sizeof(std::uint64_t));
  for (auto from = ranges.begin(); from != ranges.end();) {
    const auto count = std::min(ranges_max, static_cast<std::size_t>(ranges.end() - from));
    const auto to = from + static_cast<std::ptrdiff_t>(count);
    port_.send(session::Late{{from, to}}, number(), 0);
    from = to;
  }
}

void ConsumeChannel::flush() {
  port_.flush();
  if (wants_room_ && port_.has_room()) port_.work_soon();
}

void ConsumeChannel::go_on() {
  if (std::exchange(wants_room_, false) && topic_ != nullptr) topic_->consumers().wake(*this);
}

void ConsumeChannel::end(ClientError error, const std::string& why) {
  topic_ = nullptr;
  port_.end_channel(*this, code_of(error), why);
}

}  // namespace lightq::broker
