/// The connection of one peer: its input and output, and for ZMTP peers the handshake and commands. Layer:
/// net.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "admission/buffer_budget.hpp"
#include "admission/turn_share.hpp"
#include "net/event_loop.hpp"
#include "net/output_buffer.hpp"
#include "net/silence_limit.hpp"
#include "net/socket.hpp"
#include "net/wire_cipher.hpp"
#include "zmtp/zmtp.hpp"
#include "zmtp/zmtp_handshake.hpp"

namespace lightq::broker {

/// A connection. It owns the socket, the buffers and the encryption. Derived classes define how the
/// connection opens and how an open connection works. They are the connections of plain producers (inlets),
/// plain consumers (outlets), sessions and the control socket. Thread: the reactor's.
class Connection : public EventLoop::Source, public BufferBudget::Holder {
 public:
  /// The object that keeps the connection. Each event is reported at most once.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void connection_opened(Connection& connection) = 0;
    /// Called when the connection ends, as its last call. The connection has left the loop by then. The owner
    /// destroys it later (EventLoop::destroy_later), never within this call.
    virtual void connection_closed(Connection& connection, const std::string& why) = 0;
    /// Returns the authorizer that checks tickets of ZeroMQ peers. Null: the handshake asks for no ticket.
    [[nodiscard]] virtual const ConnectionAuthorizer* authorizer() const = 0;
    /// Returns the time from the connection's start to the end of the handshake.
    [[nodiscard]] virtual std::chrono::milliseconds handshake_time() const = 0;
    /// Called before the peer's bytes are parsed in the handshake. False: the connection is closed, because
    /// the limit on connections is reached.
    [[nodiscard]] virtual bool has_room() { return true; }
    /// Called when the connection's user is known: at the end of the handshake, before the peer learns of it.
    /// False: the connection is closed, because the user's limit is reached.
    [[nodiscard]] virtual bool has_room_for(const TicketHolder& /*holder*/) { return true; }
    /// Called when the handshake took longer than handshake_time. The connection is closed then.
    virtual void handshake_late() {}
    /// Returns true if many unauthenticated peers connect and disconnect (AcceptBudget::crowded).
    [[nodiscard]] virtual bool crowded() { return false; }
    /// Returns the bound on the memory of large messages. Null: none.
    [[nodiscard]] virtual BufferBudget* buffers() { return nullptr; }
  };

  /// `scratch`: the buffer in which input is received. All connections of a thread share it.
  Connection(EventLoop& loop, UniqueFd descriptor, Owner& owner, std::vector<std::byte>& scratch);
  ~Connection() override;

  /// Sends the greeting and waits for the peer's. Opens immediately if there is no handshake. Returns false
  /// if the loop could not watch the connection.
  bool start();
  [[nodiscard]] bool is_open() const { return state_ == State::open; }
  /// Returns true if the connection has been open, even if it has ended since.
  [[nodiscard]] bool was_open() const { return was_open_; }
  /// Returns true if the connection was refused for lack of a valid ticket.
  [[nodiscard]] bool unauthorized() const { return handshake_ && handshake_->unauthorized(); }
  /// Returns the holder of the ticket that the peer showed. Returns an empty holder if the peer showed none,
  /// or one without a user.
  [[nodiscard]] TicketHolder holder() const { return handshake_ ? handshake_->holder() : TicketHolder{}; }
  /// Returns true if the peer has closed its side. Some of its bytes may still be unread.
  [[nodiscard]] bool peer_gone() const { return peer_gone_; }
  /// Returns true if the peer's machine has stopped answering ours.
  [[nodiscard]] bool is_peer_lost() const;
  /// Ends the connection. Calls the owner's connection_closed within this call. Requires: not called within a
  /// callback of this connection.
  void close(const std::string& why);
  /// Returns true if bytes were received and not consumed, here or in the operating system.
  [[nodiscard]] bool has_unread_input() const;
  void release_idle_memory();
  void release_spare_memory() override {
    if (!in_callback_) release_idle_memory();
  }
  [[nodiscard]] std::size_t buffered_bytes() const override;
  void end_soon(const std::string& why) override { fail(why); }
  [[nodiscard]] bool waits_for_us() const override { return paused_ && !output_blocked_; }
  [[nodiscard]] std::uint64_t held_by() const override { return holder().user; }
  /// Sends a PONG without a PING, on a connection that is not read from for a while. The broker does not read
  /// the peer's PINGs then, and the PONG shows that it is alive although the log is full. `all`: also if the
  /// peer has sent no PING yet.
  void keep_alive(bool all);

  void on_ready() override;
  void on_event(EventLoop::Readiness readiness) override;
  /// Ends the connection.
  bool out_of_memory() override;
  bool take_woken() override { return is_shared() && shared_->take_woken(); }

 protected:
  /// Makes the handshake of the two sides. Nothing: there is none, and the connection is open from its start.
  [[nodiscard]] virtual std::optional<ZmtpHandshake> make_handshake() const = 0;
  /// Makes the cipher that encrypts the connection from its first byte. Null: nothing is encrypted, unless
  /// the handshake brings a cipher.
  [[nodiscard]] virtual std::unique_ptr<WireCipher> make_cipher() const { return nullptr; }
  virtual void on_open() = 0;
  /// Takes whole frames off the front of `bytes` and returns their length. The remaining bytes are passed
  /// again, followed by more. Calls fail() on malformed input. May overwrite the bytes that it takes. Stops
  /// once its `turn_share()` is used up; it is called again for the remaining bytes.
  virtual std::size_t consume(std::span<std::byte> bytes) = 0;
  /// Returns the space for the next bytes of a large frame that is being received. Empty: there is no such
  /// frame. While there is one, there are no leftover bytes. Throws std::bad_alloc.
  virtual std::span<std::byte> large_frame_space() { return {}; }
  virtual void large_frame_received(std::size_t) {}
  /// Moves about `bytes_max` bytes from shared memory to their destination, releases them there, and returns
  /// their number. 0: the first bytes must be received in the usual way. Requires: there are no leftover
  /// bytes.
  virtual std::size_t take_from(SharedWire&, std::size_t /*bytes_max*/) { return 0; }
  /// Returns the bytes of messages that were received completely and find no space in the log.
  [[nodiscard]] virtual std::size_t held_bytes() const { return 0; }
  /// Returns the memory of large frames in bytes: being received, or kept for the next one.
  [[nodiscard]] virtual std::size_t large_frame_memory() const { return 0; }
  /// Releases the memory of large frames, unless one is being received.
  virtual void release_large_frame() {}
  /// Returns true while the peer is unauthenticated.
  [[nodiscard]] virtual bool is_unauthenticated() const { return state_ != State::open; }
  /// Returns how many more bytes an unauthenticated peer must send, at least 1, until the leftover bytes
  /// `left` can be parsed.
  [[nodiscard]] virtual std::size_t missing(ByteView left) const {
    return handshake_ ? handshake_->missing(left) : 1;
  }
  virtual void on_writable() {}
  virtual void on_command(const zmtp::Command&) {}
  /// Returns true if an open connection is of no use once its output cannot be sent. A connection that only
  /// receives returns false and is read to its end, because the peer's last bytes are still there.
  [[nodiscard]] virtual bool lives_by_output() const { return true; }

  /// From now on no input stays in memory, except the bytes that `consume` has taken: `scratch` is wiped
  /// after each input. Input of a connection that is not open yet is always wiped.
  void wipe_input(bool wipes = true) {
    wipes_input_ = wipes;
    if (cipher_ != nullptr) cipher_->wipe_plain(wipes);
  }
  /// Permits encrypted frames of up to `bytes` from now on.
  void allow_frames_of(std::uint64_t bytes) {
    if (cipher_ != nullptr) cipher_->allow_units_of(bytes);
  }
  /// Stops or resumes watching for input. After a resume, bytes that were received but not consumed come
  /// first.
  void set_paused(bool paused);
  [[nodiscard]] bool paused() const { return paused_; }
  /// Returns the share of a turn (TurnShare) that the present input may use.
  [[nodiscard]] TurnShare& turn_share() { return turn_share_; }
  [[nodiscard]] std::chrono::milliseconds handshake_time() const { return owner_.handshake_time(); }
  void close_late(const std::string& why) {
    if (ignored()) return close(ignored_for_);
    owner_.handshake_late();
    close(why);
  }
  /// Parks a peer that sent nonsense, if many unauthenticated peers connect and disconnect. A closed peer
  /// would reconnect immediately. A parked peer waits unread until its handshake time is over or another peer
  /// needs its place. Returns false if few peers connect; then the caller closes the connection.
  bool ignore(const std::string& why);
  [[nodiscard]] bool ignored() const { return !ignored_for_.empty(); }
  /// Ends the connection when the current callback is over. The first reason counts.
  void fail(const std::string& why);
  /// Ends the connection as `fail` does, because there is no memory for its bytes.
  void fail_for_memory() { fail("the broker has too little memory for the connection's data"); }
  /// Calls `work`, which needs memory for this connection's bytes. Returns false if there is none; then the
  /// connection ends, and nothing that `work` appended to the output is sent.
  template <typename Work>
  bool with_memory(Work&& work) {
    try {
      work();
      return true;
    } catch (const std::bad_alloc&) {
      fail_for_memory();
      return false;
    }
  }
  [[nodiscard]] bool failed() const { return !failure_.empty(); }
  /// Handles the body of a command frame. Answers PING itself; if several came together, only the last. Ends
  /// the connection if nothing arrives for the TTL of the last PING.
  void handle_command(ByteView body);
  /// Sends buffered output, and watches for space if some of it remains.
  void flush_output() { flush_output_with({}); }
  /// Sends buffered output as flush_output does, followed by `behind`, straight from its place. Copies only
  /// the bytes of `behind` that the system does not take.
  void flush_output_with(ByteView behind);
  /// Sends `bytes` immediately, and copies of `descriptors` with them. Requires: a Unix socket, and no
  /// buffered output. Returns false if they could not be sent.
  bool send_descriptors(ByteView bytes, std::span<const int> descriptors);
  /// From now on input and output go through shared memory, and the socket only reports the end. `place`
  /// counts the memory against a limit, and is released once the memory has been emptied (empty_apart).
  /// Requires: a Unix socket without encryption, and no buffered output.
  void share(std::unique_ptr<session::SharedRings> rings, SharedWake wake, std::shared_ptr<void> place);
  [[nodiscard]] bool is_shared() const { return shared_ != nullptr; }
  /// Returns the number of the connection's descriptor, for waking the peer. The connection still owns it.
  [[nodiscard]] int descriptor_number() const { return descriptor_.get(); }
  /// Returns true if the peer is a process of this machine, connected to a Unix socket.
  [[nodiscard]] bool is_local() const;
  /// Requests that the last input is wiped from shared memory when it is released.
  void wipe_shared() { wipes_shared_ = true; }

  /// Tells the peer that no more output follows. Input is still received, so that the last output reaches the
  /// peer: closing a connection with unread input may discard output that was sent before.
  void shut_output();

  OutputBuffer& output() { return output_; }
  [[nodiscard]] const OutputBuffer& output() const { return output_; }
  EventLoop& loop() { return loop_; }

 private:
  enum class State { opening, open, closed };

  void note_buffers(bool moved);
  void forget_buffers();
  std::span<std::byte> space_for_large_frame();
  std::span<std::byte> space_behind_leftover();
  void read_once();
  void read_sealed();
  void read_shared();
  void stop_waking();
  void take(std::span<std::byte> large, std::size_t bytes);
  void received_sealed(std::span<std::byte> wire);
  void deliver(std::span<std::byte> bytes);
  void adopt(std::unique_ptr<WireCipher> cipher);
  void consume_leftover();
  [[nodiscard]] bool input_is_secret() const { return wipes_input_ || state_ != State::open; }
  void empty(std::vector<std::byte>& input) const;
  void send_pong(ByteView context);
  void answer_ping();
  bool end_if_silent();
  [[nodiscard]] bool has_unreceived_input() const;
  void received(std::span<std::byte> bytes);
  std::size_t handshake(ByteView bytes);
  void wait_for_missing();
  void opened();
  void update_interest();
  void end_if_failed();
  void look_first();
  void end(const std::string& why);

  EventLoop& loop_;
  UniqueFd descriptor_;
  Owner& owner_;
  std::vector<std::byte>& scratch_;
  std::optional<ZmtpHandshake> handshake_;
  State state_ = State::opening;
  bool paused_ = false;
  bool output_blocked_ = false;
  bool peer_gone_ = false;
  bool was_open_ = false;
  bool peer_pings_ = false;
  bool ping_unanswered_ = false;
  bool output_broken_ = false;
  bool wipes_input_ = false;
  bool in_callback_ = false;
  bool has_buffers_ = false;      // the owner's budget counts this connection
  bool was_paused_ = false;       // since it last began to consume
  bool leftover_unseen_ = false;  // leftover input must be consumed before more is read
  bool reads_later_ = false;      // at the connection's next turn
  bool watched_ = false;
  bool wipes_shared_ = false;
  EventLoop::Interest interest_ = EventLoop::Interest::readable;
  EventLoop::TimerId handshake_deadline_ = 0;
  TurnShare turn_share_;
  SilenceLimit silence_;                                                // the TTL of the peer's PING
  std::array<std::byte, zmtp::ping_context_bytes_max> ping_context_{};  // of the last PING
  std::size_t ping_context_bytes_ = 0;
  std::size_t low_water_ = 1;  // low-water mark: the bytes that make the descriptor readable
  std::string failure_;
  std::string ignored_for_;
  std::vector<std::byte> leftover_;
  std::unique_ptr<WireCipher> cipher_;      // null: not encrypted
  std::vector<std::byte> sealed_leftover_;  // encrypted bytes that are no whole unit yet
  int woken_by_ = -1;                       // the descriptor that wakes this side once shared_ is set
  std::unique_ptr<SharedWire> shared_;      // null: input and output go through the descriptor
  OutputBuffer output_;                     // refers to cipher_ and shared_
};

}  // namespace lightq::broker
