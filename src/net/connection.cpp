/// Input, output and handshake of a connection. Layer: net.
#include "net/connection.hpp"

#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "admission/memory_reserve.hpp"

namespace lightq::broker {

namespace {

constexpr std::size_t opened_bytes_kept_max = 1 * limits::MiB;

/// Throws std::bad_alloc.
void reserve_fallibly(std::vector<std::byte>& bytes, std::size_t capacity) {
  const FallibleAllocations fallible;
  bytes.reserve(capacity);
}

/// The buffer into which a thread's connections decrypt input. Empty between two inputs.
std::vector<std::byte>& opened_bytes() {
  static thread_local std::vector<std::byte> bytes;
  return bytes;
}

}  // namespace

Connection::Connection(EventLoop& loop, UniqueFd descriptor, Owner& owner, std::vector<std::byte>& scratch)
    : loop_(loop), descriptor_(std::move(descriptor)), owner_(owner), scratch_(scratch), silence_(loop) {}

Connection::~Connection() {
  stop_waking();
  if (watched_) loop_.unwatch(descriptor_.get(), *this);
  loop_.cancel_soon(*this);
  loop_.cancel(handshake_deadline_);
  forget_buffers();
  empty(leftover_);
}

/// Clears `input` and keeps its memory. Wipes the bytes first if they must be wiped.
void Connection::empty(std::vector<std::byte>& input) const {
  if (input_is_secret() && !input.empty()) explicit_bzero(input.data(), input.size());
  input.clear();
}

bool Connection::start() {
  handshake_ = make_handshake();
  if (!with_memory([this] { adopt(make_cipher()); })) return false;
  if (!handshake_ && (cipher_ == nullptr || cipher_->ready())) {
    opened();
  } else if (handshake_) {
    handshake_->guard(owner_.authorizer());
    handshake_->begin(output_.tail());
  }
  if (is_unauthenticated()) look_first();
  if (state_ == State::closed) return true;
  watched_ = static_cast<bool>(loop_.watch(descriptor_.get(), *this, interest_));
  if (!watched_) return false;
  if (state_ == State::opening) {
    const auto time = owner_.handshake_time();
    handshake_deadline_ = loop_.at(EventLoop::Clock::now() + time, [this, time] {
      if (state_ != State::open) close_late("no handshake within " + std::to_string(time.count()) + " ms");
    });
  }
  flush_output();
  return true;
}

/// Reads once before the descriptor is watched. A peer that has already disconnected gets no output, and its
/// connection is never watched.
void Connection::look_first() {
  in_callback_ = true;
  with_memory([this] { read_once(); });
  note_buffers(true);
  in_callback_ = false;
  end_if_failed();
}

void Connection::on_ready() {
  in_callback_ = true;
  consume_leftover();
  const bool reads = std::exchange(reads_later_, false) || is_shared();
  if (reads && !paused_ && !leftover_unseen_ && !failed()) read_once();
  note_buffers(false);
  in_callback_ = false;
  end_if_failed();
}

void Connection::on_event(EventLoop::Readiness readiness) {
  in_callback_ = true;
  if (readiness.readable) silence_.heard();
  if (has_buffers_)
    note_buffers(true);  // now, so that no later step takes this connection for one that stands still
  // Does not end the connection: the peer's last bytes are still to be read.
  if (paused_) peer_gone_ |= readiness.hung_up;
  if (ignored() && readiness.hung_up) fail("closed by the peer");
  if (is_shared()) {
    // Wakes are read from the socket, if at all, before the memory is read: later input wakes this side
    // again.
    if (readiness.readable && shared_->descriptor() < 0 && shared_->should_read_wakes() &&
        !receive_wakes(descriptor_))
      shared_->end();
    if (readiness.hung_up) shared_->end();
    readiness.readable = true;  // the end of the input comes after the bytes that are still unread
  }
  if ((readiness.writable || is_shared()) && output_blocked_) {
    output_blocked_ = false;
    flush_output();
    if (!failed() && is_open()) on_writable();
  }
  // Leftover input is parsed before more is read: the end may follow it.
  if (readiness.readable && !paused_ && !leftover_unseen_ && !failed()) {
    reads_later_ = TurnShare::turn_is_long_over();
    reads_later_ ? loop_.call_by_turns(*this) : read_once();
  }
  note_buffers(true);
  in_callback_ = false;
  end_if_failed();
}

bool Connection::out_of_memory() {
  in_callback_ = false;
  if (state_ == State::closed) return true;
  fail_for_memory();
  end_if_failed();
  return true;
}

std::size_t Connection::buffered_bytes() const {
  // A leftover of up to one read is not counted: the number of connections bounds those bytes.
  const std::size_t left = leftover_.capacity() > scratch_.size() ? leftover_.capacity() : 0;
  return large_frame_memory() + held_bytes() + left + output_.memory_bytes() + sealed_leftover_.capacity();
}

void Connection::note_buffers(bool moved) {
  if (!has_buffers_ && buffered_bytes() < BufferBudget::counted_from) return;
  BufferBudget* const budget = state_ == State::closed || failed() ? nullptr : owner_.buffers();
  if (budget == nullptr) return;
  has_buffers_ = budget->note(*this, moved, loop_.call_time());
}

void Connection::forget_buffers() {
  if (!std::exchange(has_buffers_, false)) return;
  if (BufferBudget* const budget = owner_.buffers(); budget != nullptr) budget->forget(*this);
}

std::span<std::byte> Connection::space_for_large_frame() {
  std::span<std::byte> space;
  with_memory([&] { space = large_frame_space(); });
  return space;
}

/// Returns the space for input, after the leftover of the last input.
std::span<std::byte> Connection::space_behind_leftover() {
  std::copy(leftover_.begin(), leftover_.end(), scratch_.begin());
  return std::span(scratch_).subspan(leftover_.size());
}

void Connection::end_if_failed() {
  if (failed()) end(failure_);
}

void Connection::fail(const std::string& why) {
  if (failed()) return;
  failure_ = why;
  loop_.call_soon(*this);  // for a failure outside this connection's callbacks, e.g. while delivery flushes
}

bool Connection::ignore(const std::string& why) {
  if (!owner_.crowded()) return false;
  keep_little(descriptor_.get());
  set_paused(true);
  ignored_for_ = why;
  return true;
}

void Connection::close(const std::string& why) {
  end(why);
}

void Connection::end(const std::string& why) {
  if (state_ == State::closed) return;
  state_ = State::closed;
  stop_waking();
  if (std::exchange(watched_, false)) loop_.unwatch(descriptor_.get(), *this);
  loop_.cancel_soon(*this);
  loop_.cancel(handshake_deadline_);
  silence_.stop();
  descriptor_.reset();
  forget_buffers();
  owner_.connection_closed(*this, why);
}

/// Called before the descriptor is closed. Reads the wakes that have arrived over it: the system resets a
/// Unix socket that is closed with unread bytes, instead of showing its peer the end.
void Connection::stop_waking() {
  if (woken_by_ < 0) return;
  const bool by_socket = woken_by_ == descriptor_.get();
  loop_.unwatch_arrivals(std::exchange(woken_by_, -1));
  if (by_socket) static_cast<void>(receive_wakes(descriptor_));
}

void Connection::read_once() {
  if (is_shared()) return read_shared();
  if (cipher_ != nullptr) return read_sealed();
  const auto large = space_for_large_frame();
  if (failed()) return;
  const auto space = large.empty() ? space_behind_leftover() : large;
  assert(!space.empty());  // with no space, receiving nothing would look like the end of the stream
  const auto got = receive(descriptor_, space);
  if (got <= 0 && large.empty() && input_is_secret()) explicit_bzero(scratch_.data(), leftover_.size());
  if (got == 0) return fail("closed by the peer");
  if (got < 0) {
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) fail(std::strerror(errno));
    return;
  }
  take(large, static_cast<std::size_t>(got));
}

/// Processes `bytes` bytes that were received into `large`, or, if that is empty, after the leftover.
void Connection::take(std::span<std::byte> large, std::size_t bytes) {
  if (!large.empty()) return large_frame_received(bytes);
  const std::size_t whole = leftover_.size() + bytes;
  const bool is_secret = input_is_secret();
  empty(leftover_);
  received(std::span(scratch_).first(whole));
  if (is_secret || input_is_secret()) explicit_bzero(scratch_.data(), whole);
}

void Connection::adopt(std::unique_ptr<WireCipher> cipher) {
  if (cipher == nullptr) return;
  cipher_ = std::move(cipher);
  cipher_->wipe_plain(wipes_input_);
  output_.seal_with(*cipher_);
}

void Connection::read_sealed() {
  const auto got = receive(descriptor_, scratch_);
  if (got == 0) return fail("closed by the peer");
  if (got < 0) {
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) fail(std::strerror(errno));
    return;
  }
  received_sealed(std::span(scratch_).first(static_cast<std::size_t>(got)));
}

/// Decrypts and processes `wire`. Keeps a copy of the bytes that are no whole unit yet.
void Connection::received_sealed(std::span<std::byte> wire) {
  const bool behind_others = !sealed_leftover_.empty();
  if (behind_others) {
    const FallibleAllocations fallible;
    sealed_leftover_.insert(sealed_leftover_.end(), wire.begin(), wire.end());
    wire = sealed_leftover_;
  }
  std::vector<std::byte> plain = std::move(opened_bytes());
  // Reserves enough: growing would leave an unwiped copy in the old memory.
  reserve_fallibly(plain,
                   leftover_.size() + (wipes_input_ ? opened_bytes_kept_max : wire.size()) + scratch_.size());
  plain.assign(leftover_.begin(), leftover_.end());
  empty(leftover_);
  std::vector<std::byte> answer;
  const std::size_t used = cipher_->open(wire, plain, answer);
  if (behind_others) {
    sealed_leftover_.erase(sealed_leftover_.begin(),
                           sealed_leftover_.begin() + static_cast<std::ptrdiff_t>(used));
    if (sealed_leftover_.empty()) sealed_leftover_ = std::vector<std::byte>();
  } else {
    sealed_leftover_.assign(wire.begin() + static_cast<std::ptrdiff_t>(used), wire.end());
  }
  if (!answer.empty()) {
    output_.append_as_is(answer);
    flush_output();
  }
  if (state_ == State::opening && cipher_->ready()) {
    opened();
    flush_output();  // output that waited for this
  }
  // Bytes that were decrypted completely before the failure count.
  if (state_ == State::open && !plain.empty()) deliver(plain);
  if (!cipher_->failure().empty()) fail(cipher_->failure());
  empty(plain);
  if (plain.capacity() > opened_bytes_kept_max) plain = std::vector<std::byte>();
  opened_bytes() = std::move(plain);
}

/// Processes decrypted bytes. A large frame that is being received takes the first of them.
void Connection::deliver(std::span<std::byte> bytes) {
  while (!bytes.empty() && !failed() && !paused_) {
    const auto large = space_for_large_frame();
    if (failed()) return;
    if (large.empty()) return received(bytes);
    const std::size_t step = std::min(large.size(), bytes.size());
    std::copy_n(bytes.begin(), step, large.begin());
    bytes = bytes.subspan(step);
    large_frame_received(step);
  }
  if (failed() || bytes.empty()) return;
  reserve_fallibly(leftover_, bytes.size());
  leftover_.assign(bytes.begin(), bytes.end());
  leftover_unseen_ = true;
}

void Connection::received(std::span<std::byte> bytes) {
  std::size_t used = 0;
  if (state_ != State::open) {
    used = handshake(bytes);
    if (cipher_ != nullptr) {  // the remaining bytes are encrypted
      empty(leftover_);
      return received_sealed(bytes.subspan(used));
    }
  }
  was_paused_ = false;
  turn_share_.begin();
  if (state_ == State::open && !failed()) used += consume(bytes.subspan(used));
  answer_ping();
  if (failed()) return;
  const ByteView rest = ByteView(bytes).subspan(used);
  reserve_fallibly(leftover_, rest.size());
  leftover_.assign(rest.begin(), rest.end());
  // paused_ alone does not tell: the connection may have been paused and resumed while it consumed.
  leftover_unseen_ = (was_paused_ || turn_share_.is_used_up()) && !leftover_.empty();
  if (leftover_unseen_ && !paused_) loop_.call_by_turns(*this);
  if (leftover_.empty() && leftover_.capacity() > zmtp::command_bytes_max)
    leftover_ = std::vector<std::byte>();
  if (!leftover_.empty() || low_water_ > 1) wait_for_missing();
}

/// Raises the low-water mark to the bytes that are missing. A peer that sends its handshake byte by byte then
/// wakes the thread only when there is something to parse.
void Connection::wait_for_missing() {
  const bool waits = !leftover_.empty() && cipher_ == nullptr && is_unauthenticated();
  const std::size_t bytes = waits ? std::min(missing(leftover_), zmtp::command_bytes_max) : 1;
  if (std::exchange(low_water_, bytes) != bytes) set_low_water(descriptor_.get(), bytes);
}

void Connection::consume_leftover() {
  if (!leftover_unseen_ || paused_ || failed() || state_ != State::open) return;
  leftover_unseen_ = false;
  std::vector<std::byte> bytes = std::move(leftover_);
  leftover_ = std::vector<std::byte>();
  deliver(bytes);
  empty(bytes);
}

std::size_t Connection::handshake(ByteView bytes) {
  if (!owner_.has_room()) {
    fail("the maximum number of connections is open");
    return bytes.size();
  }
  const std::uint64_t said = output_.appended_total();
  const std::size_t used = handshake_->take(bytes, output_.tail());
  const bool is_known = handshake_->complete() || handshake_->holder() != TicketHolder{};
  if (is_known && !owner_.has_room_for(handshake_->holder())) {
    fail("its user has the maximum number of connections here");
    return bytes.size();
  }
  const bool failed_now = !handshake_->failure().empty();
  if (failed_now || output_.appended_total() != said)
    flush_output();  // also sends the greeting, if it is unsent
  if (failed_now && handshake_->is_nonsense() && ignore(handshake_->failure())) return bytes.size();
  if (failed_now) fail(handshake_->failure());
  if (handshake_->complete() && !failed()) {
    adopt(handshake_->take_cipher());
    opened();
  }
  return used;
}

void Connection::opened() {
  state_ = State::open;
  loop_.cancel(handshake_deadline_);
  was_open_ = true;
  owner_.connection_opened(*this);
  on_open();
}

void Connection::handle_command(ByteView body) {
  const auto command = zmtp::parse_command(body);
  if (!command) return fail("a malformed command");
  if (command->name == "PING") {
    if (command->data.size() < zmtp::ping_ttl_bytes) return fail("a malformed PING");
    const auto context = command->data.subspan(zmtp::ping_ttl_bytes);
    silence_.set(zmtp::ttl_of_ping(command->data), [this] { return end_if_silent(); });
    peer_pings_ = ping_unanswered_ = true;
    ping_context_bytes_ = std::min(context.size(), ping_context_.size());
    std::copy_n(context.begin(), ping_context_bytes_, ping_context_.begin());
    return;
  }
  on_command(*command);
}

void Connection::send_pong(ByteView context) {
  // A peer that sends PING and does not read the PONGs fills the buffer. It gets no more of them.
  if (output_broken_ || (output_.buffered() > zmtp::command_bytes_max && output_blocked_)) return;
  zmtp::append_command(output_.tail(), "PONG", context);
  flush_output();
}

void Connection::answer_ping() {
  if (std::exchange(ping_unanswered_, false) && !failed())
    send_pong(ByteView(ping_context_).first(ping_context_bytes_));
}

/// Called when nothing was read for the limit. Returns false if input waits to be read, or if this side does
/// not read for lack of space and so cannot know.
bool Connection::end_if_silent() {
  if (paused_ || leftover_unseen_ || has_unreceived_input()) return false;
  close("received nothing for the " + std::to_string(silence_.most().count()) +
        " ms that its PING set as the limit");
  return true;
}

void Connection::keep_alive(bool all) {
  // Peers of ZMTP 3.0 have no heartbeats, and need not understand a PONG.
  if (!is_open() || !paused_ || peer_gone_ || !handshake_ || !handshake_->peer_speaks_3_1()) return;
  if (all || peer_pings_) send_pong({});
}

bool Connection::is_peer_lost() const {
  return descriptor_.valid() && answers_nothing(descriptor_.get());
}

bool Connection::has_unread_input() const {
  if (!leftover_.empty()) return true;
  return is_shared() ? shared_->has_input() : has_unreceived_input();
}

/// Returns true if the operating system has input, or does not tell.
bool Connection::has_unreceived_input() const {
  int bytes = 0;
  return ioctl(descriptor_.get(), FIONREAD, &bytes) != 0 || bytes > 0;
}

void Connection::set_paused(bool paused) {
  if (paused_ == paused || ignored()) return;
  paused_ = paused;
  was_paused_ |= paused;
  if (has_buffers_ && !paused) note_buffers(true);  // the connection may move again
  if ((is_shared() || leftover_unseen_) && !paused) loop_.call_soon(*this);
  update_interest();
}

void Connection::update_interest() {
  if (is_shared()) return;
  using Interest = EventLoop::Interest;
  const Interest wanted = output_blocked_ ? (paused_ ? Interest::writable : Interest::readable_and_writable)
                          : paused_       ? Interest::hang_up
                                          : Interest::readable;
  if (wanted == interest_ || !descriptor_.valid()) return;
  interest_ = wanted;
  if (watched_) loop_.set_interest(descriptor_.get(), wanted);
}

void Connection::flush_output_with(ByteView behind) {
  if (output_broken_ || failed() || !descriptor_.valid()) return;
  FlushOutcome outcome = FlushOutcome::broken;
  const bool flushed = with_memory([&] {
    if (output_blocked_) {
      output_.append(behind);
      outcome = FlushOutcome::blocked;
    } else if (!is_shared() || !peer_gone_ || !paused_) {
      outcome = output_.flush_with(descriptor_.get(), behind);
    }
  });
  if (!flushed || output_blocked_) return;
  if (outcome == FlushOutcome::broken) {
    output_broken_ = true;
    if (!is_open() || lives_by_output()) fail("closed by the peer");
    return;
  }
  output_blocked_ = outcome == FlushOutcome::blocked;
  if (output_blocked_) note_buffers(false);
  if (output_blocked_ && is_shared()) shared_->give_way();
  update_interest();
}

void Connection::shut_output() {
  if (descriptor_.valid()) shutdown(descriptor_.get(), SHUT_WR);
}

void Connection::release_idle_memory() {
  output_.release_memory();
  release_large_frame();
  if (leftover_.empty()) leftover_ = std::vector<std::byte>();
}

}  // namespace lightq::broker
