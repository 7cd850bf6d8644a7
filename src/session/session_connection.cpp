/// Takes a session's frames, and decides when it reads and ends. Layer: session.
#include "session/session_connection.hpp"

#include <string.h>

#include <algorithm>
#include <array>
#include <utility>

#include <lightq/protocol/session_memory.hpp>

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
// The longest encrypted ZeroMQ message before hello. It is received whole, and may contain some bytes after
// the hello.
constexpr std::uint64_t unauthenticated_message_bytes_max = 128 * limits::KiB;
constexpr std::size_t long_batch_from = 8 * limits::KiB;  // shorter ones are handled together

std::uint32_t body_bytes_max_of(std::uint64_t message_bytes_max) {
  constexpr std::uint64_t least = 1 * limits::MiB;
  const std::uint64_t one_message = message_bytes_max + batch_layout::header_bytes + record_bytes(0);
  return static_cast<std::uint32_t>(std::max(least, one_message));
}

/// Returns true if the frame has a channel and a request where its operation needs them, and only there.
bool is_addressed(const FrameHeader& header) {
  const bool asks = header.op == Op::hello || header.op == Op::present || header.op == Op::share ||
                    header.op == Op::produce_open || header.op == Op::consume_open || header.op == Op::seek ||
                    header.op == Op::read || header.op == Op::close;
  const bool on_channel = header.op == Op::produce || header.op == Op::credit ||
                          header.op == Op::acknowledge || header.op == Op::reject ||
                          header.op == Op::extend || header.op == Op::started || header.op == Op::seek ||
                          header.op == Op::close;
  return asks == (header.request != 0) && on_channel == (header.channel != 0);
}

std::string badly_addressed(const FrameHeader& header) {
  return std::string(session::rule_of(header.op).name) + ": invalid channel or request number";
}

}  // namespace

SessionConnection::SessionConnection(EventLoop& loop, UniqueFd descriptor, Owner& owner,
                                     std::vector<std::byte>& scratch, Host& host, std::uint64_t id,
                                     SessionCarrier carrier, const TlsContext* tls)
    : ZmtpConnection(loop, std::move(descriptor), owner, scratch),
      host_(host),
      id_(id),
      tls_(tls),
      body_bytes_max_(body_bytes_max_of(host.message_bytes_max())),
      tickets_(host),
      session_life_(loop, *this),
      frames_(output(), life(), carrier),
      book_(loop, host.session_settings().channels_max),
      channels_(book_, frames_, session_life_),
      producing_(channels_, tickets_),
      consuming_(channels_, tickets_, host.session_settings().reads, host.turns(), *this),
      reader_(carrier),
      heartbeats_(loop, transport(), session_life_, frames_,
                  {.have_in_flight = [this] { return consuming_.any(&ConsumeChannel::has_in_flight); },
                   .have_leases = [this] { return consuming_.any(&ConsumeChannel::has_leases); },
                   .set_silent = [this](bool silent) { consuming_.set_silent(silent); }}) {}

SessionConnection::~SessionConnection() {
  if (TurnQueue* const turns = host_.turns()) turns->forget(*this);
  for (const auto timer : {hello_timer_, pong_timer_, end_timer_, large_timer_}) loop().cancel(timer);
}

std::optional<ZmtpHandshake> SessionConnection::make_handshake() const {
  if (!reader_.in_messages()) return std::nullopt;
  ZmtpHandshake handshake("ROUTER", {"DEALER"});
  handshake.take_bodies_up_to(unauthenticated_message_bytes_max);
  return handshake;
}

std::unique_ptr<WireCipher> SessionConnection::make_cipher() const {
  return tls_ == nullptr ? nullptr : std::make_unique<TlsCipher>(*tls_);
}

void SessionConnection::on_open() {
  heartbeats_.count_from_now();
  // The time includes the TLS or ZeroMQ handshake before.
  const auto time = handshake_time();
  hello_timer_ = loop().at(began_ + time, [this, time] {
    if (!tickets_.is_admitted()) close_late("no hello within " + std::to_string(time.count()) + " ms");
  });
}

void SessionConnection::on_ready() {
  Connection::on_ready();
  after_output();
}

// --- Input ---

std::size_t SessionConnection::consume(std::span<std::byte> bytes) {
  if (session_life_.is_ending()) return bytes.size();  // input is ignored after the goodbye
  const auto fetch_ahead_in = [this](ByteView left) {
    return reader_.in_messages() ? left.size() : fetch_frames_ahead(left, book_);
  };
  std::size_t command_bytes = 0;  // no sign of life of the client: its library answers
  std::size_t at = reader_.skip(bytes.size());
  auto ahead = at + fetch_ahead_in(bytes.subspan(at));
  while (reads() && !asked_to_share_) {
    const std::size_t from = at;
    const auto next = reader_.next(bytes, at, body_bytes_max_, tickets_.is_admitted());
    if (next.found == FrameReader::Found::command) {
      command_bytes += at - from;
      handle_command(next.bytes);
      TurnWork::add(TurnWork::command_taken);
      if (input().turn_share().use_up()) break;
      continue;
    }
    if (!take(next, at) || input().turn_share().use_up()) break;
    if (at < ahead) continue;  // the frames up to `ahead` are dispatched and confirmed together
    producing_.after_input();
    ahead = at + fetch_ahead_in(bytes.subspan(at));
  }
  if (life().is_parked()) return bytes.size();
  if (std::exchange(asked_to_share_, false) && at < bytes.size())
    end_session(Code::invalid_frame, "bytes after a share frame");
  heartbeats_.hear(bytes.size() - std::min(bytes.size(), left_bytes_ + command_bytes));
  left_bytes_ = bytes.size() - at;
  after_input();
  return session_life_.is_ending() ? bytes.size() : at;
}

/// Handles the part that the reader has found before `at`. Returns false if nothing more can be taken from
/// the input.
bool SessionConnection::take(const FrameReader::Next& next, std::size_t& at) {
  using Found = FrameReader::Found;
  switch (next.found) {
    case Found::frame: take_whole(next.header, next.bytes); return true;
    case Found::too_large:
      heartbeats_.note_frame();
      if (is_addressed(next.header)) {
        producing_.on_too_large(next.header, next.bytes);
      } else {
        session_life_.break_off(badly_addressed(next.header));
      }
      after_frame();
      return true;
    case Found::begun:
      if (session::frame_layout::header_bytes + next.header.body_bytes <= large_frame_from) return false;
      begin_large(next);
      at += next.bytes.size();
      return false;
    case Found::fault:
      if (!reader_.is_nonsense() || tickets_.is_admitted() || !park(reader_.fault()))
        end_session(Code::invalid_frame, reader_.fault());
      return false;
    case Found::nothing:
    case Found::command: break;
  }
  return false;
}

/// Begins to receive a large frame into memory of its own.
void SessionConnection::begin_large(const FrameReader::Next& next) {
  const std::size_t whole = session::frame_layout::header_bytes + next.header.body_bytes;
  reader_.take_begun(whole);
  if (!input().large_frame().begin(whole, next.bytes)) life().fail_for_memory();
  large_used_ = true;
  if (large_timer_ == 0) arm_large_timer();
}

void SessionConnection::large_frame_received(std::span<std::byte> frame, std::size_t bytes) {
  if (frame.empty()) return heartbeats_.hear(bytes);
  if (!session_life_.is_ending())
    take_whole(session::decode_frame_header(frame, body_bytes_max_).header, frame);
  heartbeats_.hear(bytes);
  after_input();
}

/// Releases the memory for large frames after it was unused for a while.
void SessionConnection::arm_large_timer() {
  large_timer_ = loop().at(EventLoop::Clock::now() + large_kept_time, [this] {
    large_timer_ = 0;
    if (std::exchange(large_used_, false) || input().large_frame().is_under_way()) return arm_large_timer();
    release_idle_memory();
  });
}

std::size_t SessionConnection::take_from(SharedWire& wire, std::size_t bytes_max) {
  std::size_t taken = 0;
  while (taken < bytes_max) {
    const std::size_t bytes = take_batch_from(wire);
    if (bytes == 0) break;
    taken += bytes;
    if (input().turn_share().use_up()) break;
  }
  if (taken == 0) return 0;
  heartbeats_.hear(taken);
  after_input();
  return taken;
}

/// Takes a long batch directly into its topic's log, and checks it there before it becomes part of the log.
/// Returns the bytes of its frame, or 0 if there is none.
std::size_t SessionConnection::take_batch_from(SharedWire& wire) {
  std::array<std::byte, session::frame_layout::header_bytes> start;
  if (!tickets_.is_admitted() || !reads() || reader_.is_skipping() || wire.copy(start) < start.size())
    return 0;
  const auto [fault, header] = session::decode_frame_header(start, body_bytes_max_);
  if (fault || header.op != Op::produce || header.body_bytes < long_batch_from ||
      !session::frame_crc_fits(start, header))
    return 0;
  const std::size_t bytes = start.size() + header.body_bytes;
  if (wire.input_bytes() < bytes) return 0;
  const std::span<std::byte> body = producing_.place_for(header);
  // The client controls the count of available bytes, so there may be fewer now.
  if (body.empty() || wire.copy(body, start.size()) < body.size()) return 0;
  wire.release(bytes);
  heartbeats_.note_frame();
  TurnWork::add(TurnWork::frame_taken);
  handle(header, body);
  after_frame();
  return bytes;
}

// --- Frames ---

void SessionConnection::take_whole(const FrameHeader& header, std::span<std::byte> frame) {
  heartbeats_.note_frame();
  TurnWork::add(header.request == 0 ? TurnWork::frame_taken : TurnWork::session_request);
  if (!session::frame_crc_fits(frame, header))
    return end_session(Code::invalid_frame, "a frame with a wrong checksum");
  handle(header, frame.subspan(session::frame_layout::header_bytes));
  after_frame();
}

/// Carries out the pause and the end that the parts of the session have asked for within a frame.
void SessionConnection::after_frame() {
  if (book_.any_held()) set_paused(true);
  if (const auto& end = session_life_.wanted_end()) end_session(end->code, end->why);
}

void SessionConnection::handle(const FrameHeader& header, std::span<std::byte> body) {
  if (!is_addressed(header)) return session_life_.break_off(badly_addressed(header));
  switch (header.op) {
    case Op::hello: return on_hello(header, body);
    case Op::present: return on_present(header, body);
    case Op::share: return on_share(header, body);
    case Op::produce_open: return producing_.on_open(header, body, body_bytes_max_);
    case Op::produce: return producing_.on_produce(header, body);
    case Op::consume_open: return consuming_.on_open(header, body);
    case Op::read: return consuming_.on_read(header, body);
    case Op::credit:
    case Op::acknowledge:
    case Op::reject:
    case Op::extend:
    case Op::started:
    case Op::seek:
      if (Channel* const channel = channels_.addressee(header, Channel::Kind::consumes))
        static_cast<ConsumeChannel*>(channel)->take(header, body);
      return;
    case Op::close:
      if (channels_.close(header)) consuming_.close(header.channel);
      return;
    case Op::heartbeat: return;
    case Op::goodbye: return on_goodbye();
    case Op::welcome:
    case Op::shared:
    case Op::late:
    case Op::revoked:
    case Op::produce_opened:
    case Op::confirm:
    case Op::refuse:
    case Op::consume_opened:
    case Op::deliver:
    case Op::done:
    case Op::error: break;
  }
  session_life_.break_off(std::string(session::rule_of(header.op).name) +
                          " is a frame that only the broker sends");
}

void SessionConnection::on_hello(const FrameHeader& header, ByteView body) {
  if (tickets_.is_admitted()) return session_life_.break_off("a second hello");
  auto hello = channels_.decode<session::Hello>(header, body);
  if (!hello) return;
  SessionTickets::Refusal refusal;
  if (hello->newest_version < session::version_oldest || session::version_newest < hello->oldest_version) {
    refusal = {Code::unsupported_version,
               "this broker speaks version " + std::to_string(session::version_newest)};
  } else {
    refusal = tickets_.show_first(hello->ticket.expose());
  }
  if (refusal.code != Code::ok) {
    frames_.answer_error(header, refusal.code, refusal.why);
    return end_session(refusal.code, refusal.why);
  }
  // A message may contain several frames; docs/session.md, "Transport".
  input().allow_frames_of(2 * std::uint64_t{body_bytes_max_} + 64 * limits::KiB);
  name_ = hello->name;
  loop().cancel(hello_timer_);
  const auto& settings = host_.session_settings();
  // Without heartbeats, others would never receive what waits in a silent client with leases.
  if (settings.heartbeat_ms == 0)
    hello->codecs = CodecSet(hello->codecs.bits() & ~session::hello_knows_leases);
  frames_.greet(*hello);
  frames_.send(session::Welcome{.version = std::min(hello->newest_version, session::version_newest),
                                .frame_bytes_max = body_bytes_max_,
                                .heartbeat_ms = settings.heartbeat_ms,
                                .channels_max = settings.channels_max,
                                .broker = settings.broker,
                                .session = id_},
               0, header.request);
  heartbeats_.begin(settings.heartbeat_ms, hello->heartbeat_ms);
  host_.session_opened(*this);
}

void SessionConnection::on_present(const FrameHeader& header, ByteView body) {
  const auto shown = channels_.decode<session::Present>(header, body);
  if (!shown) return;
  const auto refusal = tickets_.show_another(shown->ticket.expose());
  if (refusal.code != Code::ok) return frames_.answer_error(header, refusal.code, refusal.why);
  frames_.send(session::Done{}, 0, header.request);
}

void SessionConnection::look_at_rights() {
  if (!tickets_.is_admitted() || session_life_.is_ending() || life().failed()) return;
  const bool none_left = tickets_.drop_invalid();
  producing_.end_unpermitted();
  consuming_.end_unpermitted();
  if (none_left) end_session(Code::unauthorized_access, "all tickets of this session have become invalid");
  session_life_.work_soon();
}

void SessionConnection::on_share(const FrameHeader& header, ByteView body) {
  const auto wanted = channels_.decode<session::Share>(header, body);
  if (!wanted) return;
  if (transport().is_shared()) return session_life_.break_off("a second share frame");
  if (has_unread_input()) return session_life_.break_off("bytes after a share frame");
  if (reader_.in_messages() || tls_ != nullptr || !transport().is_local())
    return frames_.answer_error(header, Code::not_supported,
                                "shared memory needs a session over a plain Unix socket");
  asked_to_share_ = true;
  frames_.flush();
  if (!frames_.is_empty())
    return frames_.answer_error(header, Code::limit_reached, "the client has unread answers");
  share(header, *wanted);
}

void SessionConnection::share(const FrameHeader& header, const session::Share& wanted) {
  const session::SharedSizes& sizes = wanted.sizes;
  MemoryBudget* const budget = host_.session_settings().memory;
  const std::uint64_t user = held_by();
  if (budget == nullptr || !budget->take(user, sizes.whole())) {
    tickets_.limit_reached(Limit::shared_bytes_total);
    return frames_.answer_error(header, Code::limit_reached,
                                "the shared memory of all sessions is in use (shared_bytes_total)");
  }
  const auto answer =
      session::encode_frame(session::Shared{sizes, wanted.wakes_by_socket}, 0, header.request);
  const auto without = [&](const std::string& why) {
    budget->give_back(user, sizes.whole());
    frames_.answer_error(header, Code::io_error, why);
  };
  auto memory = SharedMemory::make(sizes.whole());
  if (!memory) return without(memory.error().text());
  Result<SharedWake> wake =
      wanted.wakes_by_socket ? SharedWake::over(transport().descriptor()) : SharedWake::by_descriptors();
  if (!wake) return without(wake.error().text());
  const std::array<int, 3> given{memory->descriptor(), wake->of_broker(), wake->of_client()};
  const auto sent =
      transport().send_descriptors(answer, std::span(given).first(wanted.wakes_by_socket ? 1 : given.size()));
  if (sent != static_cast<ssize_t>(answer.size())) {
    if (sent > 0) life().fail("the peer does not read its socket");
    return without("the system refuses to pass more file descriptors");
  }
  frames_.count_said(answer.size());
  memory->close_descriptor();
  Connection::share(
      std::make_unique<session::SharedRings>(std::move(*memory), sizes, session::SharedSide::broker),
      std::move(*wake), budget->place_of(user, sizes.whole()));
}

void SessionConnection::on_goodbye() {
  session_life_.leave();
  set_paused(true);
  consuming_.leave();
}

// --- Output and end ---

void SessionConnection::after_input() {
  producing_.after_input();
  go_on();
}

/// Continues all work that is due or has waited for space in the output.
void SessionConnection::after_output() {
  if (const auto& end = session_life_.wanted_end()) end_session(end->code, end->why);
  producing_.send_confirms();
  go_on();
}

void SessionConnection::go_on() {
  if (life().failed()) return;
  if (frames_.has_room()) consuming_.go_on();
  channels_.answer_closed();
  if (session_life_.is_leaving() && book_.settled() && consuming_.settled()) end_session(Code::ok, "");
  frames_.flush();
  // The system has accepted the output that blocked.
  if (frames_.has_room() && consuming_.wants_room()) session_life_.work_soon();
  look_at_pause();
  if (session_life_.is_ending() && frames_.is_empty()) transport().shut_output();
}

void SessionConnection::look_at_pause() {
  const bool has_unread_replies = frames_.has_unread_replies();
  if (session_life_.is_ending()) return;
  const bool was_paused = paused();
  set_paused(session_life_.is_leaving() || book_.any_held() || has_unread_replies);
  if (paused() && reader_.in_messages() && pong_timer_ == 0) arm_pong_timer();
  if (!was_paused || paused()) return;
  heartbeats_.count_from_now();  // the client's input of that time is not read yet
  loop().call_soon(*this);       // for input received before
}

/// Sends signs of life to a ZeroMQ library that checks the connection with PING, because PINGs are not read
/// now.
void SessionConnection::arm_pong_timer() {
  constexpr auto interval = std::chrono::milliseconds(100);
  constexpr unsigned intervals_per_second = 10;
  pong_timer_ = loop().at(EventLoop::Clock::now() + interval, [this] {
    pong_timer_ = 0;
    if (!paused() || session_life_.is_ending()) return;
    keep_alive(++pongs_ % intervals_per_second == 0);
    arm_pong_timer();
  });
}

void SessionConnection::end_session(Code code, const std::string& why) {
  if (session_life_.is_ending() || life().failed()) return;
  frames_.send(session::Goodbye{code, why}, 0, 0);
  session_life_.end();
  frames_.end();
  input().large_frame().drop();
  if (code == Code::shutting_down) consuming_.broker_stops();
  book_.drop_all();
  producing_.drop_confirms();
  consuming_.drop_reads();
  frames_.flush();
  set_paused(false);  // input is read and dropped, so that the goodbye arrives
  if (frames_.is_empty()) transport().shut_output();
  end_timer_ = loop().at(EventLoop::Clock::now() + end_time_max,
                         [this, code, why] { close(code == Code::ok ? "the client sent goodbye" : why); });
}

}  // namespace lightq::broker
