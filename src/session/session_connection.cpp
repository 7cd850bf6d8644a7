/// Input, output and timers of a session. Layer: session.
#include "session/session_connection.hpp"

#include <algorithm>
#include <span>
#include <utility>
#include <variant>

#include "admission/turn_work.hpp"
#include "crypto/tls_cipher.hpp"
#include "session/frames_ahead.hpp"

namespace lightq::broker {

using session::Code;
using session::FrameHeader;
using session::Op;

namespace {

constexpr auto end_time_max = std::chrono::seconds(1);
// An incomplete frame longer than this is received into memory of its own, which grows with the bytes
// received.
constexpr std::size_t large_frame_from = 64 * limits::KiB;
constexpr auto large_kept_time = std::chrono::seconds(2);
constexpr std::size_t output_bytes_max = 64 * limits::KiB;
// The longest encrypted ZeroMQ message before hello. It is received whole, and may contain some bytes after
// the hello.
constexpr std::uint64_t unauthenticated_message_bytes_max = 128 * limits::KiB;
// Messages from this size on are sent without copying them into the output buffer.
constexpr std::size_t straight_from = 8 * limits::KiB;

}  // namespace

SessionConnection::SessionConnection(EventLoop& loop, UniqueFd descriptor, Owner& owner,
                                     std::vector<std::byte>& scratch, Host& host, std::uint64_t id,
                                     SessionCarrier carrier, const TlsContext* tls)
    : Connection(loop, std::move(descriptor), owner, scratch),
      host_(host),
      id_(id),
      carrier_(carrier),
      tls_(tls),
      channels_(loop, host.session_settings().channels_max),
      producing_(*this, channels_),
      consuming_(*this, channels_, host.session_settings().reads) {
  wipe_input();  // until the ticket has been checked
}

SessionConnection::~SessionConnection() {
  if (TurnQueue* const turns = host_.turns()) turns->forget(*this);
  for (const auto timer :
       {hello_timer_, silence_timer_, heartbeat_timer_, pong_timer_, end_timer_, large_timer_})
    loop().cancel(timer);
}

void SessionConnection::on_turn() {
  after_output();
}

bool SessionConnection::has_turn() {
  TurnQueue* const turns = host_.turns();
  return turns == nullptr || turns->ask(*this, held_by());
}

void SessionConnection::spend(std::uint64_t bytes) {
  if (TurnQueue* const turns = host_.turns()) turns->spend(bytes);
}

std::optional<ZmtpHandshake> SessionConnection::make_handshake() const {
  if (carrier_ == SessionCarrier::stream) return std::nullopt;
  ZmtpHandshake handshake("ROUTER", {"DEALER"});
  handshake.take_bodies_up_to(unauthenticated_message_bytes_max);
  return handshake;
}

std::unique_ptr<WireCipher> SessionConnection::make_cipher() const {
  return tls_ == nullptr ? nullptr : std::make_unique<TlsCipher>(*tls_);
}

void SessionConnection::on_open() {
  heard_ = EventLoop::Clock::now();
  // The time includes the TLS or ZeroMQ handshake before.
  const auto time = handshake_time();
  hello_timer_ = loop().at(began_ + time, [this, time] {
    if (!greeted_) close_late("no hello within " + std::to_string(time.count()) + " ms");
  });
}

std::uint32_t SessionConnection::body_bytes_max() const {
  constexpr std::uint64_t least = 1 * limits::MiB;
  const std::uint64_t one_message = host_.message_bytes_max() + batch_layout::header_bytes + record_bytes(0);
  return static_cast<std::uint32_t>(std::max(least, one_message));
}

void SessionConnection::on_ready() {
  Connection::on_ready();
  after_output();
}

// --- Input ---

std::size_t SessionConnection::consume(std::span<std::byte> bytes) {
  if (ending_) return bytes.size();  // input is ignored after the goodbye
  std::size_t at = command_bytes_ = 0;
  const auto fetch_ahead_in = [this](ByteView left) {
    return carrier_ == SessionCarrier::stream ? fetch_frames_ahead(left, channels_) : left.size();
  };
  at = std::min<std::uint64_t>(skipped_bytes_, bytes.size());
  skipped_bytes_ -= at;
  for (auto ahead = at + fetch_ahead_in(bytes.subspan(at));
       reading() && !asked_to_share_ && take_frame(bytes, at);) {
    if (turn_share().use_up()) break;
    if (at < ahead) continue;  // the frames up to `ahead` are dispatched and confirmed together
    producing_.after_input();
    confirm();
    ahead = at + fetch_ahead_in(bytes.subspan(at));
  }
  if (ignored()) return bytes.size();
  if (std::exchange(asked_to_share_, false) && at < bytes.size()) broken("bytes after a share frame");
  hear(bytes.size() - std::min(bytes.size(), left_bytes_ + command_bytes_));
  left_bytes_ = bytes.size() - at;
  after_input();
  return ending_ ? bytes.size() : at;
}

/// Advances to the start of a message. Returns false if it is not in the input yet.
bool SessionConnection::begin_message(ByteView bytes, std::size_t& at) {
  while (!failed() && !ending_) {
    const auto next = messages_.next(bytes.subspan(at));
    if (const auto* begun = std::get_if<ZmtpMessages::Begun>(&next)) {
      at += begun->header_bytes;
      return true;
    }
    if (const auto* command = std::get_if<ZmtpMessages::Command>(&next)) {
      at += command->bytes;
      command_bytes_ += command->bytes;
      handle_command(command->body);
      TurnWork::add(TurnWork::command_taken);
      if (turn_share().use_up()) return false;
      continue;
    }
    if (const auto* fault = std::get_if<ZmtpMessages::Broken>(&next)) broken(fault->why);
    return false;
  }
  return false;
}

/// Handles one frame. Returns false if there is no whole frame left.
bool SessionConnection::take_frame(std::span<std::byte> bytes, std::size_t& at) {
  const bool in_messages = carrier_ == SessionCarrier::zmtp;
  if (in_messages && messages_.left() == 0 && !begin_message(bytes, at)) return false;
  const auto left = bytes.subspan(at);
  if (in_messages && messages_.left() < session::frame_layout::header_bytes) {
    broken("a message that ends within a frame");
    return false;
  }
  if (left.size() < session::frame_layout::header_bytes) return false;
  const auto decoded = session::decode_frame_header(left, body_bytes_max());
  if (decoded.fault == session::FrameFault::bad_length && greeted_) {
    if (const auto header = produces_too_much(left)) return refuse_too_large(*header, left, at);
  }
  if (decoded.fault) {
    const std::string why = "an invalid frame: " + std::string(to_word(*decoded.fault));
    if (greeted_ || !ignore(why)) broken(why);
    return false;
  }
  if (!greeted_ && decoded.header.op != Op::hello) {
    broken("a frame before hello");
    return false;
  }
  const std::size_t whole = session::frame_layout::header_bytes + decoded.header.body_bytes;
  if (in_messages && messages_.left() < whole) {
    broken("a message that ends within a frame");
    return false;
  }
  if (left.size() < whole) {
    if (decoded.header.op == Op::present) wipe_input(), wipe_shared();  // until the whole frame is received
    if (whole <= large_frame_from) return false;
    if (in_messages) messages_.take(whole);
    if (!large_.begin(whole, left)) fail_for_memory();
    large_used_ = true;
    if (large_timer_ == 0) arm_large_timer();
    at = bytes.size();
    return false;
  }
  at += whole;
  if (in_messages) messages_.take(whole);
  take_whole(decoded.header, left.first(whole));
  return true;
}

std::size_t SessionConnection::missing(ByteView left) const {
  if (!is_open()) return Connection::missing(left);
  if (carrier_ == SessionCarrier::zmtp) return 1;  // the bytes left may begin within a message
  std::size_t whole = session::frame_layout::header_bytes;
  if (left.size() >= whole) whole += session::decode_frame_header(left, body_bytes_max()).header.body_bytes;
  return whole > left.size() ? whole - left.size() : 1;
}

void SessionConnection::large_frame_received(std::size_t bytes) {
  const auto frame = large_.take(bytes);
  if (frame.empty()) return hear(bytes);
  if (!ending_) take_whole(session::decode_frame_header(frame, body_bytes_max()).header, frame);
  hear(bytes);
  after_input();
}

/// Notes a sign of life: a whole frame, or a certain number of bytes of an incomplete one. The number exceeds
/// the heartbeats that a damaged length could take for a frame's body.
void SessionConnection::hear(std::size_t bytes) {
  unheard_bytes_ += bytes;
  if (!std::exchange(frame_taken_, false) && unheard_bytes_ < session::heard_bytes_least) return;
  unheard_bytes_ = 0;
  heard_ = EventLoop::Clock::now();
  if (std::exchange(is_quiet_, false)) work_soon();
}

/// Releases the memory for large frames after it was unused for a while.
void SessionConnection::arm_large_timer() {
  large_timer_ = loop().at(EventLoop::Clock::now() + large_kept_time, [this] {
    large_timer_ = 0;
    if (std::exchange(large_used_, false) || large_.is_under_way()) return arm_large_timer();
    large_.release_memory();
    release_idle_memory();
  });
}

void SessionConnection::take_whole(const FrameHeader& header, std::span<std::byte> frame) {
  frame_taken_ = true;
  TurnWork::add(header.request == 0 ? TurnWork::frame_taken : TurnWork::session_request);
  if (!session::frame_crc_fits(frame, header)) return broken("a frame with a wrong checksum");
  if (!check_address(header)) return;
  handle(header, frame.subspan(session::frame_layout::header_bytes));
  if (header.op == Op::hello || header.op == Op::present) forget_ticket(frame);
}

/// Checks that the frame has a channel and a request where its operation needs them, and only there.
bool SessionConnection::check_address(const FrameHeader& header) {
  const bool asks = header.op == Op::hello || header.op == Op::present || header.op == Op::share ||
                    header.op == Op::produce_open || header.op == Op::consume_open || header.op == Op::seek ||
                    header.op == Op::read || header.op == Op::close;
  const bool on_channel = header.op == Op::produce || header.op == Op::credit ||
                          header.op == Op::acknowledge || header.op == Op::reject ||
                          header.op == Op::extend || header.op == Op::seek || header.op == Op::close;
  if (asks == (header.request != 0) && on_channel == (header.channel != 0)) return true;
  broken(std::string(session::rule_of(header.op).name) + ": invalid channel or request number");
  return false;
}

void SessionConnection::handle(const FrameHeader& header, std::span<std::byte> body) {
  switch (header.op) {
    case Op::hello: return on_hello(header, body);
    case Op::present: return on_present(header, body);
    case Op::share: return on_share(header, body);
    case Op::produce_open: return producing_.on_open(header, body);
    case Op::produce: return producing_.on_produce(header, body);
    case Op::consume_open: return consuming_.on_open(header, body);
    case Op::read: return consuming_.on_read(header, body);
    case Op::credit:
    case Op::acknowledge:
    case Op::reject:
    case Op::extend:
    case Op::seek: return consuming_.on_channel_frame(header, body);
    case Op::close: return on_close(header);
    case Op::heartbeat: return;
    case Op::goodbye: return on_goodbye();
    case Op::welcome:
    case Op::shared:
    case Op::late:
    case Op::produce_opened:
    case Op::confirm:
    case Op::refuse:
    case Op::consume_opened:
    case Op::deliver:
    case Op::done:
    case Op::error: break;
  }
  broken(std::string(session::rule_of(header.op).name) + " is a frame that only the broker sends");
}

Channel* SessionConnection::addressee(const FrameHeader& header, Channel::Kind kind) {
  Channel* const channel = channels_.find_open(header.channel);
  if (channel == nullptr || channels_.is_closing(header.channel)) {
    // Requests are always answered. Other frames on a channel that is closing or closed are ignored.
    if (header.request != 0 || (channel == nullptr && !channels_.is_over(header.channel)))
      answer_error(header, Code::unknown_channel, "the channel is not open");
    return nullptr;
  }
  if (channel->kind() == kind) return channel;
  refuse_frame(header, channel,
               std::string(session::rule_of(header.op).name) + " on a channel of the wrong kind");
  return nullptr;
}

void SessionConnection::on_close(const FrameHeader& header) {
  if (channels_.find_open(header.channel) == nullptr) {
    if (channels_.is_over(header.channel)) return send(session::Done{}, header.channel, header.request);
    return answer_error(header, Code::unknown_channel, "the channel is not open");
  }
  consuming_.retire(header.channel);
  if (!channels_.begin_close(header.channel, header.request))
    answer_error(header, Code::unknown_channel, "the channel is being closed already");
}

void SessionConnection::on_goodbye() {
  leaving_ = true;
  set_paused(true);
  consuming_.leave();
}

// --- Output ---

bool SessionConnection::has_room() const {
  return is_open() && !failed() && !ending_ && !is_quiet_ && output().buffered() < output_bytes_max;
}

void SessionConnection::append_message_header(std::size_t bytes) {
  if (carrier_ == SessionCarrier::stream) return;
  std::byte* const to = output().extend(zmtp::frame_header_bytes_max);
  output().shrink(zmtp::frame_header_bytes_max - zmtp::encode_frame_header(to, bytes, false));
}

void SessionConnection::append(ByteView frame) {
  with_memory([&] {
    append_message_header(frame.size());
    output().append(frame);
    said_bytes_ += frame.size();
  });
}

void SessionConnection::deliver(ByteView head, ByteView rest) {
  if (!is_open() || failed() || ending_) return;
  with_memory([&] {
    append_message_header(head.size() + rest.size());
    said_bytes_ += head.size() + rest.size();
    output().append(head);
    if (rest.size() >= straight_from) {
      flush_output_with(rest);
    } else {
      output().append(rest);
      if (output().buffered() >= output_bytes_max) flush_output();
    }
  });
  delivered_bytes_ = output().buffered();
}

void SessionConnection::after_input() {
  producing_.after_input();
  after_output();
}

void SessionConnection::confirm() {
  if (!failed() && !ending_ && output().buffered() <= output_bytes_max) producing_.send_confirms();
}

/// Continues all work that is due or has waited for space in the output.
void SessionConnection::after_output() {
  if (failed()) return;
  confirm();
  if (has_room()) consuming_.go_on();
  finish_settled();
  flush_output();
  if (has_room() && consuming_.wants_room()) work_soon();  // the system has accepted the output that blocked
  look_at_pause();
  if (ending_ && output().buffered() == 0) shut_output();
}

void SessionConnection::finish_settled() {
  while (const auto closed = channels_.take_closed()) send(session::Done{}, closed->number, closed->request);
  if (leaving_ && !ending_ && channels_.settled() && consuming_.settled()) end_session(Code::ok, "");
}

void SessionConnection::end_session(Code code, const std::string& why) {
  if (ending_ || failed()) return;
  send(session::Goodbye{code, why}, 0, 0);
  ending_ = true;
  large_.drop();
  channels_.drop_all();
  producing_.drop_confirms();
  consuming_.drop_reads();
  flush_output();
  set_paused(false);  // input is read and dropped, so that the goodbye arrives
  if (output().buffered() == 0) shut_output();
  end_timer_ = loop().at(EventLoop::Clock::now() + end_time_max,
                         [this, code, why] { close(code == Code::ok ? "the client sent goodbye" : why); });
}

/// Returns true if the client does not read its replies. Deliveries in the output do not count:
/// acknowledgements must still be read. A stopped client must still be noticed.
bool SessionConnection::too_many_answers() const {
  return output().buffered() > output_bytes_max + delivered_bytes_;
}

void SessionConnection::look_at_pause() {
  if (output().buffered() == 0) delivered_bytes_ = 0;
  if (ending_) return;
  const bool was_paused = paused();
  set_paused(leaving_ || channels_.any_held() || too_many_answers());
  if (paused() && carrier_ == SessionCarrier::zmtp && pong_timer_ == 0) arm_pong_timer();
  if (!was_paused || paused()) return;
  heard_ = EventLoop::Clock::now();  // the client's input of that time is not read yet
  loop().call_soon(*this);           // for input received before
}

void SessionConnection::end_channel(Channel& channel, Code code, const std::string& why) {
  if (ending_) return;
  const std::uint32_t number = channel.number();
  if (const std::uint32_t asked = channels_.take_opening(number); asked != 0) {
    send(session::ErrorAnswer{code, why}, 0, asked);
  } else {
    send(session::ErrorAnswer{code, why}, number, 0);
  }
  channels_.drop(number);
  work_soon();
}

// --- Time ---

/// Arms the timer that ends the session after twice the heartbeat interval without a sign of life. Time in
/// which the broker itself does not read does not count. A busy client becomes quiet instead.
void SessionConnection::arm_silence_timer() {
  const std::uint32_t wanted_ms = host_.session_settings().heartbeat_ms;
  if (wanted_ms == 0) return;
  const auto allowed = std::chrono::milliseconds(2ULL * wanted_ms);
  // A client that said goodbye is not read. Output that it still accepts is a sign of life.
  const std::uint64_t sent = output().sent_total();
  if (paused() && (!leaving_ || sent != sent_seen_)) heard_ = EventLoop::Clock::now();
  sent_seen_ = sent;
  // While not reading, the broker does not see the connection's end. If the peer's process is gone, sending
  // makes the system report it.
  if (paused() && peer_gone()) send_heartbeat();
  const auto from = is_quiet_ ? EventLoop::Clock::now() : heard_;
  silence_timer_ = loop().at(from + allowed, [this, allowed] {
    if (ending_) return;
    const bool may_be_heard = !paused() || (leaving_ && output().sent_total() == sent_seen_);
    if (may_be_heard && EventLoop::Clock::now() - heard_ >= allowed) {
      if (!is_busy()) return end_session(Code::idle, "received nothing for twice the heartbeat");
      is_quiet_ = true;
    }
    arm_silence_timer();
  });
}

/// Returns true if the client's silence may mean that it processes messages in flight. The system must still
/// have a working connection to it.
bool SessionConnection::is_busy() const {
  const bool may_be = (client_codecs_.bits() & session::hello_may_be_busy) != 0 && !leaving_;
  return may_be && consuming_.has_in_flight() && !is_peer_lost();
}

void SessionConnection::send_heartbeat() {
  send(session::Heartbeat{}, 0, 0);
  flush_output();
}

void SessionConnection::arm_heartbeat_timer() {
  if (client_heartbeat_ms_ == 0) return;
  const auto half = std::chrono::milliseconds(std::max(client_heartbeat_ms_ / 2, 1U));
  heartbeat_timer_ = loop().at(EventLoop::Clock::now() + half, [this] {
    if (ending_) return;
    if (said_bytes_ == said_seen_ && output().buffered() == 0) send_heartbeat();
    said_seen_ = said_bytes_;
    arm_heartbeat_timer();
  });
}

/// Sends signs of life to a ZeroMQ library that checks the connection with PING, because PINGs are not read
/// now.
void SessionConnection::arm_pong_timer() {
  constexpr auto interval = std::chrono::milliseconds(100);
  constexpr unsigned intervals_per_second = 10;
  pong_timer_ = loop().at(EventLoop::Clock::now() + interval, [this] {
    pong_timer_ = 0;
    if (!paused() || ending_) return;
    keep_alive(++pongs_ % intervals_per_second == 0);
    arm_pong_timer();
  });
}

}  // namespace lightq::broker
