/// Finds, refuses, closes and ends a session's channels. Layer: session.
#include "session/session_channels.hpp"

namespace lightq::broker {

using session::Code;
using session::FrameHeader;
using session::Op;

Channel* SessionChannels::addressee(const FrameHeader& header, Channel::Kind kind) {
  Channel* const channel = book_.find_open(header.channel);
  if (channel == nullptr || book_.is_closing(header.channel)) {
    // Requests are always answered. Other frames on a channel that is closing or closed are ignored.
    if (header.request != 0 || (channel == nullptr && !book_.is_over(header.channel)))
      output_.answer_error(header, Code::unknown_channel, "the channel is not open");
    return nullptr;
  }
  if (channel->kind() == kind) return channel;
  refuse_frame(header, channel,
               std::string(session::rule_of(header.op).name) + " on a channel of the wrong kind");
  return nullptr;
}

void SessionChannels::refuse_frame(const FrameHeader& header, Channel* channel, const std::string& why) {
  const bool of_session = header.op == Op::hello || header.op == Op::share;
  if (header.request != 0 && !of_session) return output_.answer_error(header, Code::invalid_frame, why);
  if (channel == nullptr) return life_.break_off(why);
  end(*channel, Code::invalid_frame, why);
}

bool SessionChannels::close(const FrameHeader& header) {
  if (book_.find_open(header.channel) == nullptr) {
    if (book_.is_over(header.channel)) {
      output_.send(session::Done{}, header.channel, header.request);
    } else {
      output_.answer_error(header, Code::unknown_channel, "the channel is not open");
    }
    return false;
  }
  if (!book_.begin_close(header.channel, header.request))
    output_.answer_error(header, Code::unknown_channel, "the channel is being closed already");
  return true;
}

void SessionChannels::answer_closed() {
  while (const auto closed = book_.take_closed())
    output_.send(session::Done{}, closed->number, closed->request);
}

void SessionChannels::end(Channel& channel, Code code, const std::string& why) {
  if (life_.is_ending()) return;
  const std::uint32_t number = channel.number();
  if (const std::uint32_t asked = book_.take_opening(number); asked != 0) {
    output_.send(session::ErrorAnswer{code, why}, 0, asked);
  } else {
    output_.send(session::ErrorAnswer{code, why}, number, 0);
  }
  book_.drop(number);
  life_.work_soon();
}

}  // namespace lightq::broker
