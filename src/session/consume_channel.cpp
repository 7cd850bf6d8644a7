/// Handles a consumer's frames, and sends its slices. Layer: session.
#include "session/consume_channel.hpp"

#include <algorithm>
#include <utility>

#include "session/frame_translation.hpp"
#include "session/slice_frames.hpp"
#include "topic/runtime/member_acks.hpp"

namespace lightq::broker {

using session::Code;
using session::FrameHeader;
using session::Op;

TopicConsumers::Refusal ConsumeChannel::open(const ConsumeRequest& asked, std::uint64_t user) {
  has_leases_ = asked.leases;
  has_dead_letters_ = output_.client_knows_dead_letters() && asked.acknowledgement == AckMode::by_consumer;
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

void ConsumeChannel::take(const FrameHeader& header, ByteView body) {
  if (topic_ == nullptr) return;
  switch (header.op) {
    case Op::credit: return on_credit(header, body);
    case Op::acknowledge: return on_acknowledge(header, body);
    case Op::reject: return on_reject(header, body);
    case Op::extend: return on_extend(header, body);
    case Op::started: return on_started(header, body);
    default: return on_seek(header, body);
  }
}

void ConsumeChannel::on_credit(const FrameHeader& header, ByteView body) {
  const auto credit = session_.decode<session::Credit>(header, body, this);
  if (!credit || topic_->consumers().add_credit(*this, credit_of(*credit))) return;
  tickets_.limit_reached(Limit::in_flight_messages_max);
  session_.end(*this, Code::limit_reached, "credit of more than 2^31 messages or 2^62 bytes");
}

void ConsumeChannel::on_acknowledge(const FrameHeader& header, ByteView body) {
  auto done = session_.decode<session::Acknowledge>(header, body, this);
  if (!done || names_no_hand_out(header)) return;
  acknowledge(*topic_, *this, ack_of(std::move(*done)));
}

void ConsumeChannel::on_started(const FrameHeader& header, ByteView body) {
  auto started = session_.decode<session::Started>(header, body, this);
  if (!started) return;
  if (!has_leases_) return session_.refuse_frame(header, this, "started: the consumer has no leases");
  start(*topic_, *this, start_of(std::move(*started)), EventLoop::Clock::now());
}

/// Ends the channel if the frame names a hand-out and the consumer has no leases, or the other way round.
bool ConsumeChannel::names_no_hand_out(const FrameHeader& header) {
  if (has_leases_ == ((header.flags & session::flag_hand_out) != 0)) return false;
  session_.refuse_frame(header, this,
                        std::string(session::rule_of(header.op).name) +
                            (has_leases_ ? ": the number of the hand-out is missing"
                                         : ": a hand-out, and the consumer has no leases"));
  return true;
}

void ConsumeChannel::on_reject(const FrameHeader& header, ByteView body) {
  if ((header.flags & session::flag_dead_letter) != 0 && !has_dead_letters_)
    return session_.end(*this, Code::not_supported,
                        output_.client_knows_dead_letters()
                            ? "dead letters: the consumer acknowledges automatically"
                            : "dead letters: the client has not said that it knows them");
  auto rejected = session_.decode<session::Reject>(header, body, this);
  if (!rejected) return;
  if (rejected->releases && !has_leases_)
    return session_.refuse_frame(header, this, "reject: a release, and the consumer has no leases");
  if (names_no_hand_out(header) || keeps_too_long(rejected->ms)) return;
  auto reason = std::move(rejected->dead_reason);
  Rejection rejection = rejection_of(std::move(*rejected));
  if (reason) {
    rejection.kind = RejectKind::dead;
    rejection.reason = std::move(*reason);
  }
  reject(*topic_, *this, rejection, EventLoop::Clock::now());
}

void ConsumeChannel::on_extend(const FrameHeader& header, ByteView body) {
  auto extended = session_.decode<session::Extend>(header, body, this);
  if (!extended || names_no_hand_out(header) || keeps_too_long(extended->ms)) return;
  extend(*topic_, *this, extension_of(std::move(*extended)), EventLoop::Clock::now());
}

/// Ends the channel if the delay is longer than redelivery_ms_max. So no consumer can keep a message from its
/// group for good.
bool ConsumeChannel::keeps_too_long(std::uint64_t ms) {
  const std::uint64_t most = topic_->redelivery_ms_max();
  if (ms <= most) return false;
  session_.end(*this, Code::limit_reached,
               std::to_string(ms) + " ms is longer than redelivery_ms_max, " + std::to_string(most));
  return true;
}

void ConsumeChannel::on_seek(const FrameHeader& header, ByteView body) {
  const auto seek = session_.decode<session::Seek>(header, body);
  if (!seek) return;
  TopicRuntime& topic = *topic_;
  if (topic.consumers().shares_group_with_others(*this) && !tickets_.may_manage(topic, scope_))
    return output_.answer_error(header, Code::unauthorized_access,
                                "other consumers use this group, so a seek needs the right to manage it");
  const auto next = topic.consumers().seek(*this, position_of(seek->to));
  if (!next)
    return output_.answer_error(header, Code::io_error,
                                "the position is among messages that cannot be read now");
  output_.send(session::Done{next->value}, header.channel, header.request);
}

void ConsumeChannel::admitted(const Opened& opened) {
  admitted_ = true;
  session_.begin(*this, session::ConsumeOpened{.next = opened.next.value,
                                               .committed = opened.committed.value,
                                               .next_offset = topic_->store().next_offset().value,
                                               .incarnation = topic_->incarnation(),
                                               .ack_timeout_ms = opened.ack_timeout_ms,
                                               .leases = has_leases_,
                                               .dead_letters = has_dead_letters_});
}

bool ConsumeChannel::writable() const {
  if (retired_) return false;
  if (output_.has_room()) return true;
  wants_room_ = true;
  wanted_.room = true;
  return false;
}

void ConsumeChannel::deliver(const DeliveredSlice& delivered) {
  const auto sent = deliver_slice(output_, delivered.slice,
                                  {.channel = number(),
                                   .request = 0,
                                   .delivery = delivered.delivery,
                                   .hand_out = delivered.hand_out,
                                   .lost = delivered.lost});
  refused_ = delivered.slice.count - sent;
  if (refused_ == 0) return;
  retired_ = true;
  wanted_.too_large.push_back(number());
  session_.life().work_soon();
}

namespace {
/// Calls `send(ranges)` with as many of the ranges at a time as fit into a frame.
template <typename Send>
void in_frames(const std::vector<OffsetRange>& ranges, Send&& send) {
  constexpr std::size_t ranges_max = (session::ranges_body_bytes_max - 8) / (2 * sizeof(std::uint64_t));
  for (auto from = ranges.begin(); from != ranges.end();) {
    const auto count = std::min(ranges_max, static_cast<std::size_t>(ranges.end() - from));
    const auto to = from + static_cast<std::ptrdiff_t>(count);
    send(std::vector<OffsetRange>(from, to));
    from = to;
  }
}
}  // namespace

void ConsumeChannel::late(const std::vector<OffsetRange>& ranges) {
  in_frames(ranges, [&](std::vector<OffsetRange> part) {
    output_.send(session::Late{std::move(part)}, number(), 0);
  });
}

/// Also sends to a client that is silent: the frame waits in the connection.
void ConsumeChannel::revoked(RevokeCause cause, std::uint32_t before,
                             const std::vector<OffsetRange>& ranges) {
  in_frames(ranges, [&](std::vector<OffsetRange> part) {
    output_.send(session::Revoked{frame_of(cause), before, std::move(part)}, number(), 0);
  });
  session_.life().flush_at_turn_end();
}

void ConsumeChannel::flush() {
  session_.life().flush_at_turn_end();
  if (wants_room_ && output_.has_room()) session_.life().work_soon();
}

void ConsumeChannel::go_on() {
  if (std::exchange(wants_room_, false) && topic_ != nullptr) topic_->consumers().wake(*this);
}

void ConsumeChannel::end(ClientError error, const std::string& why) {
  topic_ = nullptr;
  session_.end(*this, code_of(error), why);
}

}  // namespace lightq::broker
