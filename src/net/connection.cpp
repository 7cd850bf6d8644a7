/// Opening, reading and closing of a connection. Layer: net.
#include "net/connection.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <utility>

namespace lightq::broker {

namespace {

// A leftover's memory up to this size is kept for the next one.
constexpr std::size_t leftover_kept_max = 4 * limits::KiB;
// The highest low-water mark: the thread wakes when an unauthenticated peer has sent this many bytes.
constexpr std::size_t waited_for_max = 4 * limits::KiB;

}  // namespace

Connection::Connection(EventLoop& loop, UniqueFd descriptor, Owner& owner, std::vector<std::byte>& scratch)
    : loop_(loop),
      owner_(owner),
      life_(loop, *this),
      transport_(loop, *this, std::move(descriptor)),
      input_(scratch),
      output_(transport_, life_, memory_, *this),
      memory_(loop, *this, life_, transport_, input_, output_, owner.buffers()),
      silence_(loop) {}

Connection::~Connection() {
  transport_.close();
  loop_.cancel_soon(*this);
  loop_.cancel(handshake_deadline_);
}

// --- Opening ---

bool Connection::start() {
  handshake_ = begin_handshake();
  if (!life_.with_memory([this] { encrypt_with(make_cipher()); })) return false;
  if (handshake_ != nullptr) {
    handshake_->begin(output_.tail());
  } else if (input_.cipher() == nullptr || input_.cipher()->ready()) {
    opened();
  }
  if (!life_.is_open() || is_unauthenticated()) read_at_start();
  if (life_.is_closed()) return true;
  if (!transport_.watch()) return false;
  if (life_.is_opening()) {
    const auto time = handshake_time();
    handshake_deadline_ = loop_.at(EventLoop::Clock::now() + time, [this, time] {
      if (!life_.is_open()) close_late("no handshake within " + std::to_string(time.count()) + " ms");
    });
  }
  output_.flush();
  return true;
}

/// Reads once before the descriptor is watched. A peer that has already disconnected gets no output, and its
/// connection is never watched.
void Connection::read_at_start() {
  life_.begin_callback();
  life_.with_memory([this] { read(); });
  memory_.note(true);
  life_.end_callback();
  if (life_.failed()) close(life_.failure());
}

void Connection::encrypt_with(std::unique_ptr<WireCipher> cipher) {
  if (cipher != nullptr) output_.seal_with(input_.decrypt_with(std::move(cipher)));
}

/// Takes the peer's part of the handshake off the front of `bytes`. Returns how many bytes were taken.
std::size_t Connection::take_handshake(ByteView bytes) {
  using Outcome = Handshake::Outcome;
  const std::uint64_t said = output_.appended_total();
  const std::size_t used = handshake_->take(bytes, output_.tail());
  const Outcome outcome = handshake_->outcome();
  if (outcome == Outcome::no_room) {
    life_.fail(handshake_->failure());
    return bytes.size();
  }
  const bool is_refused = outcome == Outcome::refused || outcome == Outcome::nonsense;
  if (is_refused || output_.appended_total() != said)
    output_.flush();  // also sends the first bytes, if they are unsent
  if (outcome == Outcome::nonsense && park(handshake_->failure())) return bytes.size();
  if (is_refused) life_.fail(handshake_->failure());
  if (outcome == Outcome::complete && !life_.failed()) {
    encrypt_with(handshake_->take_cipher());
    opened();
  }
  return used;
}

void Connection::opened() {
  life_.open();
  loop_.cancel(handshake_deadline_);
  owner_.connection_opened(*this);
  on_open();
}

bool Connection::park(const std::string& why) {
  if (!owner_.crowded()) return false;
  transport_.keep_little();
  set_paused(true);
  life_.park(why);
  return true;
}

void Connection::close_late(const std::string& why) {
  if (life_.is_parked()) return close(life_.parked_for());
  owner_.handshake_late();
  close(why);
}

// --- Events ---

void Connection::on_ready() {
  if (transport_.take_late_wakes()) on_event({});
  if (life_.is_closed()) return;
  life_.begin_callback();
  consume_leftover();
  const bool reads = std::exchange(reads_later_, false) || transport_.is_shared();
  if (reads && !paused() && !input_.leftover_unseen() && !life_.failed()) read();
  memory_.note(false);
  life_.end_callback();
  if (life_.failed()) close(life_.failure());
}

void Connection::on_event(EventLoop::Readiness readiness) {
  life_.begin_callback();
  if (readiness.readable) silence_.heard();
  // Notes the progress first, so that no later step closes this connection for lack of progress.
  if (memory_.is_counted()) memory_.note(true);
  // Does not end the connection: the peer's last bytes are still to be read.
  if (paused() && readiness.hung_up) transport_.note_hang_up();
  if (life_.is_parked() && readiness.hung_up) life_.fail("closed by the peer");
  if (transport_.is_shared()) {
    transport_.take_wakes(readiness);
    readiness.readable = true;  // the end of the input comes after the bytes that are still unread
    readiness.writable = true;
  }
  if (readiness.writable && output_.is_blocked()) {
    transport_.note_writable();
    output_.flush();
    if (!life_.failed() && is_open()) on_writable();
  }
  // Parses leftover input before it reads more. Otherwise the end of the input could close it unparsed.
  if (readiness.readable && !paused() && !input_.leftover_unseen() && !life_.failed()) {
    reads_later_ = TurnShare::turn_is_long_over();
    reads_later_ ? loop_.call_by_turns(*this) : read();
  }
  memory_.note(true);
  life_.end_callback();
  if (life_.failed()) close(life_.failure());
}

bool Connection::out_of_memory() {
  life_.end_callback();
  if (life_.is_closed()) return true;
  life_.fail_for_memory();
  close(life_.failure());
  return true;
}

void Connection::close(const std::string& why) {
  if (life_.is_closed()) return;
  life_.close();
  transport_.close();
  loop_.cancel_soon(*this);
  loop_.cancel(handshake_deadline_);
  silence_.stop();
  memory_.forget();
  owner_.connection_closed(*this, why);
}

/// Does not end a connection while input waits to be read, or while this side does not read for lack of space
/// and so cannot know.
void Connection::limit_silence(std::chrono::milliseconds most, const char* announced_by) {
  silence_.set(most, [this, announced_by] {
    if (paused() || input_.leftover_unseen() || transport_.has_unreceived_input()) return false;
    close("received nothing for the " + std::to_string(silence_.most().count()) + " ms that its " +
          announced_by + " set as the limit");
    return true;
  });
}

// --- Reading ---

bool Connection::has_unread_input() const {
  return !input_.leftover().empty() || transport_.has_input();
}

void Connection::set_paused(bool paused) {
  if (transport_.is_paused() == paused || life_.is_parked()) return;
  transport_.set_paused(paused);
  if (paused) return input_.note_pause();
  if (memory_.is_counted()) memory_.note(true);  // the connection may move again
  if (transport_.is_shared() || input_.leftover_unseen()) loop_.call_soon(*this);
}

void Connection::read() {
  if (transport_.is_shared()) return read_shared();
  if (input_.cipher() != nullptr) return read_sealed();
  std::span<std::byte> large;
  if (!life_.with_memory([&] { large = input_.space_in_large_frame(); })) return;
  const auto space = large.empty() ? input_.space_behind_leftover() : large;
  assert(!space.empty());  // with no space, receiving nothing would look like the end of the stream
  const auto got = transport_.receive(space);
  if (got == 0) return life_.fail("closed by the peer");
  if (got < 0) {
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) life_.fail(std::strerror(errno));
    return;
  }
  received(large, static_cast<std::size_t>(got));
}

void Connection::read_sealed() {
  const auto got = transport_.receive(input_.scratch());
  if (got == 0) return life_.fail("closed by the peer");
  if (got < 0) {
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) life_.fail(std::strerror(errno));
    return;
  }
  received_sealed(input_.scratch().first(static_cast<std::size_t>(got)));
}

/// Reads once from shared memory. Then waits to be woken, or takes another turn if there is more.
void Connection::read_shared() {
  if (paused() || input_.leftover_unseen() || life_.failed() || !life_.is_open()) return;
  SharedWire& shared = transport_.shared();
  const bool ended = shared.ended();  // read first: everything that the peer wrote, it wrote before it ended
  const bool has_input = shared.has_input();
  if (shared.broken()) return life_.fail("impossible positions in the shared memory");
  if (!has_input && ended) return life_.fail("closed by the peer");
  if (has_input) {
    std::span<std::byte> large;
    if (!life_.with_memory([&] { large = input_.space_in_large_frame(); })) return;
    const bool between_frames = input_.leftover().empty() && large.empty();
    input_.turn_share().begin();
    if (!between_frames || take_from(shared, input_.scratch().size()) == 0) {
      const std::size_t bytes = shared.copy(large.empty() ? input_.space_behind_leftover() : large);
      received(large, bytes);
      shared.release(bytes);
    }
  }
  if (life_.failed() || paused() || input_.leftover_unseen()) return;
  if (ended || !shared.wait_for_input()) loop_.call_by_turns(*this);
}

/// Processes `bytes` bytes that were received into `large`, or, if that is empty, after the leftover.
void Connection::received(std::span<std::byte> large, std::size_t bytes) {
  if (!large.empty()) return large_frame_received(input_.large_frame().take(bytes), bytes);
  consume_input(input_.join(bytes));
}

/// Decrypts and processes `wire`.
void Connection::received_sealed(std::span<std::byte> wire) {
  std::vector<std::byte> answer;
  std::vector<std::byte> plain = input_.decrypt(wire, answer);
  const WireCipher& cipher = *input_.cipher();
  if (!answer.empty()) {
    output_.append_as_is(answer);
    output_.flush();
  }
  if (life_.is_opening() && cipher.ready()) {
    opened();
    output_.flush();  // output that waited for this
  }
  // Bytes that were decrypted completely before the failure count.
  if (life_.is_open() && !plain.empty()) pass_on(plain);
  if (!cipher.failure().empty()) life_.fail(cipher.failure());
  input_.give_back(std::move(plain));
}

/// Processes decrypted bytes. A large frame that is being received takes the first of them.
void Connection::pass_on(std::span<std::byte> bytes) {
  while (!bytes.empty() && !life_.failed() && !paused()) {
    std::span<std::byte> large;
    if (!life_.with_memory([&] { large = input_.space_in_large_frame(); })) return;
    if (large.empty()) return consume_input(bytes);
    const std::size_t step = std::min(large.size(), bytes.size());
    std::copy_n(bytes.begin(), step, large.begin());
    bytes = bytes.subspan(step);
    large_frame_received(input_.large_frame().take(step), step);
  }
  if (!life_.failed() && !bytes.empty()) input_.keep_unseen(bytes);
}

/// Passes `bytes` to the handshake or the framing, and keeps the rest.
void Connection::consume_input(std::span<std::byte> bytes) {
  std::size_t used = 0;
  if (!life_.is_open()) {
    used = take_handshake(bytes);
    // The remaining bytes are encrypted.
    if (input_.cipher() != nullptr) return received_sealed(bytes.subspan(used));
  }
  input_.begin();
  if (life_.is_open() && !life_.failed()) used += consume(bytes.subspan(used));
  on_consumed();
  if (life_.failed()) return;
  const bool is_unseen = input_.keep(ByteView(bytes).subspan(used));
  if (is_unseen && !paused()) loop_.call_by_turns(*this);
  input_.release_leftover(leftover_kept_max);
  if (!input_.leftover().empty() || transport_.low_water() > 1) wait_for_missing();
}

void Connection::consume_leftover() {
  if (!input_.leftover_unseen() || paused() || life_.failed() || !life_.is_open()) return;
  std::vector<std::byte> bytes = input_.take_leftover();
  pass_on(bytes);
}

/// Raises the low-water mark to the bytes that are missing. A peer that sends its handshake byte by byte then
/// wakes the thread only when there is something to parse.
void Connection::wait_for_missing() {
  const ByteView left = input_.leftover();
  const bool is_handshake = !life_.is_open() && handshake_ != nullptr;
  const bool waits =
      !left.empty() && input_.cipher() == nullptr && (!life_.is_open() || is_unauthenticated());
  const std::size_t bytes = waits ? (is_handshake ? handshake_->missing(left) : missing(left)) : 1;
  transport_.set_low_water(std::min(bytes, waited_for_max));
}

void Connection::share(std::unique_ptr<session::SharedRings> rings, SharedWake wake,
                       std::shared_ptr<void> place) {
  const auto shared = transport_.share(std::move(rings), std::move(wake), std::move(place));
  output_.send_through(transport_.shared());
  if (!shared) return life_.fail(shared.error().text());
  loop_.call_soon(*this);
}

}  // namespace lightq::broker
