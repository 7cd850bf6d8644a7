/// Parses ZMTP frames into envelopes and requests, sends replies and pauses reading while too many are
/// unread. Layer: control.
#include "control/control_connection.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include <lightq/base/limits.hpp>

#include "admission/turn_work.hpp"

namespace lightq::broker {

std::size_t ControlConnection::consume(std::span<std::byte> bytes) {
  consumes_ = true;
  const std::size_t taken = take_frames(bytes);
  consumes_ = false;
  send_answers();
  return taken;
}

std::size_t ControlConnection::take_frames(std::span<std::byte> bytes) {
  std::size_t at = 0;
  while (!life().failed() && !paused() && !input().turn_share().is_used_up()) {
    if (frame_ == Body::none) {
      const std::size_t header = begin_frame(bytes.subspan(at));
      if (header == 0) break;
      at += header;
    }
    const auto here = static_cast<std::size_t>(std::min<std::uint64_t>(frame_left_, bytes.size() - at));
    take_body(bytes.subspan(at, here));
    at += here;
    if (frame_left_ > 0) break;
    end_frame();
    static_cast<void>(input().turn_share().use_up());
  }
  return at;
}

/// Parses a frame header and returns its length; 0 if it is incomplete or the connection has failed.
std::size_t ControlConnection::begin_frame(ByteView bytes) {
  zmtp::FrameHeader header;
  const auto outcome = zmtp::parse_frame_header(bytes, header);
  if (outcome == zmtp::FrameOutcome::incomplete) return 0;
  const std::uint64_t bytes_max = header.command ? zmtp::command_bytes_max : limits::request_bytes_hard_max;
  const bool is_nonsense = outcome == zmtp::FrameOutcome::invalid || header.body_bytes > bytes_max;
  if (is_nonsense) output().flush();  // answer the requests before it
  if (outcome == zmtp::FrameOutcome::invalid) {
    life().fail("a malformed frame");
  } else if (header.body_bytes > bytes_max) {
    if (!header.command) requests_.limit_reached(Limit::request_bytes_hard_max);
    life().fail("a frame of " + std::to_string(header.body_bytes) + " bytes, above the maximum of " +
                std::to_string(bytes_max));
  }
  if (life().failed()) return 0;
  frame_left_ = header.body_bytes;
  frame_more_ = header.more;
  if (header.command) {
    frame_ = Body::command;
  } else {
    begin_part(header);
  }
  return header.header_bytes;
}

void ControlConnection::begin_part(const zmtp::FrameHeader& header) {
  const bool is_delimiter = !delimiter_ && header.body_bytes == 0 && header.more;
  if (is_delimiter) return end_envelope();
  if (parts_ == 0) {  // the request, or the first frame of an envelope
    frame_ = Body::request;
    body_bytes_ = header.body_bytes;
  } else if (delimiter_ || !header.more) {
    frame_ = Body::dropped;
  } else {
    if (parts_ == 1) keep_in_envelope(body_);
    frame_ = begin_in_envelope(header.body_bytes) ? Body::envelope : Body::dropped;
  }
  ++parts_;
}

/// Starts a frame of the envelope. Returns false if the envelope would be too long.
bool ControlConnection::begin_in_envelope(std::uint64_t body_bytes) {
  const std::size_t left = envelope_bytes_max - envelope_.size();
  envelope_too_long_ |= body_bytes + zmtp::frame_header_bytes_max > left;
  if (envelope_too_long_) return false;
  std::byte header[zmtp::frame_header_bytes_max];
  const std::size_t header_bytes = zmtp::encode_frame_header(header, body_bytes, true);
  envelope_.append(reinterpret_cast<const char*>(header), header_bytes);
  return true;
}

void ControlConnection::keep_in_envelope(std::string_view body) {
  if (begin_in_envelope(body_bytes_)) envelope_.append(body);
}

/// Ends the envelope at its empty frame. The frames before it are not a request.
void ControlConnection::end_envelope() {
  if (parts_ == 1) keep_in_envelope(body_);
  body_.clear();
  parts_ = 0;
  delimiter_ = true;
  if (envelope_too_long_) envelope_.clear();
  std::byte header[zmtp::frame_header_bytes_max];
  const std::size_t header_bytes = zmtp::encode_frame_header(header, 0, true);
  envelope_.append(reinterpret_cast<const char*>(header), header_bytes);
  frame_ = Body::dropped;
}

void ControlConnection::take_body(ByteView bytes) {
  frame_left_ -= bytes.size();
  if (frame_ == Body::dropped) return;
  if (frame_ == Body::request) return append_to_body(bytes);
  std::string& to = frame_ == Body::envelope ? envelope_ : command_;
  to.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

/// Appends to the request. Cuts a request that is too long to one byte more than the limit.
void ControlConnection::append_to_body(ByteView bytes) {
  bytes = bytes.first(std::min(bytes.size(), request_bytes_max_ + 1 - body_.size()));
  body_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void ControlConnection::end_frame() {
  if (std::exchange(frame_, Body::none) == Body::command) {
    TurnWork::add(TurnWork::command_taken);
    output().flush();  // handle_command may end the connection
    handle_command(std::as_bytes(std::span(command_)));
    command_.clear();
  } else if (!frame_more_) {
    TurnWork::add(TurnWork::control_request);
    end_message();
  } else {
    TurnWork::add(TurnWork::frame_taken);
  }
}

void ControlConnection::end_message() {
  Envelope envelope{id_, {}, delimiter_ && envelope_too_long_};
  if (delimiter_) envelope.frames = envelope_;
  requests_.requested(envelope, {parts_, body_bytes_, body_});
  for (std::string* const part : {&body_, &envelope_})
    std::string().swap(*part);  // frees a long one's memory
  parts_ = 0;
  body_bytes_ = 0;
  delimiter_ = envelope_too_long_ = false;
}

void ControlConnection::answer(const Envelope& envelope, std::string_view text) {
  if (!is_open() || life().failed()) return;
  life().with_memory([&] {
    if (!envelope.frames.empty())
      std::memcpy(output().extend(envelope.frames.size()), envelope.frames.data(), envelope.frames.size());
    append_frame(text, false);
  });
  // Replies to requests of one input are sent together.
  if (!consumes_ || output().buffered() > limits::answers_unread_bytes_pause) send_answers();
}

void ControlConnection::send_answers() {
  if (!is_open() || life().failed()) return;
  output().flush();
  look_at_output();
}

void ControlConnection::append_frame(std::string_view body, bool more) {
  std::byte header[zmtp::frame_header_bytes_max];
  const std::size_t header_bytes = zmtp::encode_frame_header(header, body.size(), more);
  std::byte* const to = output().extend(header_bytes + body.size());
  std::memcpy(to, header, header_bytes);
  if (!body.empty()) std::memcpy(to + header_bytes, body.data(), body.size());
}

void ControlConnection::on_writable() {
  look_at_output();
}

void ControlConnection::look_at_output() {
  if (life().failed()) return;
  const std::size_t before = std::exchange(unread_, output().buffered());
  if (unread_ == 0) release_idle_memory();
  if (unread_ != before) requests_.unread_changed(*this, before);
  if (life().failed()) return;
  const bool was_paused = paused();
  set_paused(unread_ > limits::answers_unread_bytes_pause);
  if (was_paused && !paused()) loop().call_soon(*this);  // for input that has arrived already
}

void ControlConnection::give_up() {
  unread_ = 0;
  life().fail("the client does not read its replies");
}

}  // namespace lightq::broker
