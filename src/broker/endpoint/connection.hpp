/// One peer of an endpoint: its input and output, and the ZeroMQ handshake and commands where it speaks ZMTP.
/// Layer: endpoint.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "broker/endpoint/buffer_budget.hpp"
#include "broker/endpoint/event_loop.hpp"
#include "broker/endpoint/output_buffer.hpp"
#include "broker/endpoint/silence_limit.hpp"
#include "broker/endpoint/socket.hpp"
#include "broker/endpoint/turn_share.hpp"
#include "broker/endpoint/wire_cipher.hpp"
#include "broker/endpoint/zmtp.hpp"
#include "broker/endpoint/zmtp_handshake.hpp"

namespace lightq::broker {

/// The reactor's thread. Inlets and outlets say how a connection opens, and what an open one does.
class Connection : public EventLoop::Source, public BufferBudget::Holder {
 public:
  /// Whoever keeps the connection; told at most once each.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void connection_opened(Connection& connection) = 0;
    /// The last call of a connection, which takes it out of the loop first: the owner destroys it later
    /// (EventLoop::destroy_later), never within the call.
    virtual void connection_closed(Connection& connection, const std::string& why) = 0;
    /// Who may come in here, by ZeroMQ; null: no ticket is spoken of in the handshake.
    [[nodiscard]] virtual const Gate* gate() const = 0;
    /// What it has from its start to the end of the handshake.
    [[nodiscard]] virtual std::chrono::milliseconds handshake_time() const = 0;
    /// Asked before the peer is heard in the handshake. False: it is closed, for there are as many as may be.
    [[nodiscard]] virtual bool has_room() { return true; }
    /// Asked when the handshake is through, and before the peer hears so: whose connection it is, is known.
    /// False: as before.
    [[nodiscard]] virtual bool has_room_for(const TicketHolder& /*holder*/) { return true; }
    /// It took longer than handshake_time, and is closed.
    virtual void handshake_late() {}
    /// Many strangers come and go: AcceptBudget::crowded.
    [[nodiscard]] virtual bool crowded() { return false; }
    /// What bounds the memory of large messages; null: nothing does.
    [[nodiscard]] virtual BufferBudget* buffers() { return nullptr; }
  };

  /// `scratch`: where input is received, shared by all connections of a thread.
  Connection(EventLoop& loop, UniqueFd descriptor, Owner& owner, std::vector<std::byte>& scratch);
  ~Connection() override;

  /// Sends our greeting and waits for the peer's, or opens at once where there is no handshake. False: the
  /// connection could not be watched.
  bool start();
  [[nodiscard]] bool is_open() const { return state_ == State::open; }
  /// Has been open, even if it has ended since.
  [[nodiscard]] bool was_open() const { return was_open_; }
  /// It was turned away for want of a good ticket.
  [[nodiscard]] bool unauthorized() const { return handshake_ && handshake_->unauthorized(); }
  /// Whose ticket it has shown; nobody's: none, or one that names nobody.
  [[nodiscard]] TicketHolder holder() const { return handshake_ ? handshake_->holder() : TicketHolder{}; }
  /// The peer has closed its side, though not everything it sent may have been read.
  [[nodiscard]] bool peer_gone() const { return peer_gone_; }
  /// Returns true if the peer's machine has stopped answering ours.
  [[nodiscard]] bool is_peer_lost() const;
  /// Ends the connection: the owner hears of it within the call. Never from within this connection's own
  /// callbacks.
  void close(const std::string& why);
  /// Received and not consumed, here or in the operating system.
  [[nodiscard]] bool has_unread_input() const;
  void release_idle_memory();
  void release_spare_memory() override {
    if (!in_callback_) release_idle_memory();
  }
  [[nodiscard]] std::size_t buffered_bytes() const override;
  void end_soon(const std::string& why) override { fail(why); }
  [[nodiscard]] bool waits_for_us() const override { return paused_ && !output_blocked_; }
  [[nodiscard]] std::uint64_t held_by() const override { return holder().user; }
  /// For a connection that is not read from for a while: a peer that checks on us with PING, which we do not
  /// get to see, hears of us all the same and does not take a full log for a dead broker. `all`: also one
  /// that has not been seen to check.
  void keep_alive(bool all);

  void on_ready() override;
  void on_event(EventLoop::Readiness readiness) override;
  /// Ends the connection.
  bool out_of_memory() override;

 protected:
  /// How the two sides introduce themselves; nothing: they do not, and the connection is open from its start.
  [[nodiscard]] virtual std::optional<ZmtpHandshake> make_handshake() const = 0;
  /// What encrypts the connection from its first byte on; null: nothing does, unless the handshake brings a
  /// cipher.
  [[nodiscard]] virtual std::unique_ptr<WireCipher> make_cipher() const { return nullptr; }
  virtual void on_open() = 0;
  /// Takes whole frames off the front of `bytes` and answers how many bytes they were; what is left comes
  /// again, with more behind it. Calls fail() on nonsense. May write over what it takes. Takes no more once
  /// its `turn_share()` is used up: the rest comes again by itself.
  virtual std::size_t consume(std::span<std::byte> bytes) = 0;
  /// Where a large frame under way wants its next bytes; empty: none is. While one is, nothing is left over.
  /// Throws std::bad_alloc.
  virtual std::span<std::byte> large_frame_space() { return {}; }
  virtual void large_frame_received(std::size_t) {}
  /// Takes about `bytes_max` of what lies in shared memory from there to where it is to stay, and releases
  /// it: how much that was. 0: the first of it has to be received as everything else. Nothing that was
  /// received before is left over.
  virtual std::size_t take_from(SharedWire&, std::size_t /*bytes_max*/) { return 0; }
  /// Of what has come whole and finds no room.
  [[nodiscard]] virtual std::size_t held_bytes() const { return 0; }
  /// Of large frames, under way or kept for the next.
  [[nodiscard]] virtual std::size_t large_frame_memory() const { return 0; }
  /// None is under way: its memory is not needed.
  virtual void release_large_frame() {}
  /// Not known yet: it is still to show what lets it in.
  [[nodiscard]] virtual bool is_stranger() const { return state_ != State::open; }
  /// Of a stranger's bytes that are left over: how many more it takes until they can be gone on with, at
  /// least 1.
  [[nodiscard]] virtual std::size_t missing(ByteView left) const {
    return handshake_ ? handshake_->missing(left) : 1;
  }
  virtual void on_writable() {}
  virtual void on_command(const zmtp::Command&) {}
  /// Whether an open connection whose output cannot be sent is of no more use. One that only receives is read
  /// to its end all the same: what its peer sent before it went is still there.
  [[nodiscard]] virtual bool lives_by_output() const { return true; }

  /// From here on no memory that input was in keeps it, but for what `consume` has taken. `scratch` is wiped
  /// after each input then. Input that is received before the connection is open is wiped anyway.
  void wipe_input(bool wipes = true) {
    wipes_input_ = wipes;
    if (cipher_ != nullptr) cipher_->wipe_plain(wipes);
  }
  /// Encrypted frames may be so long from now on.
  void allow_frames_of(std::uint64_t bytes) {
    if (cipher_ != nullptr) cipher_->allow_units_of(bytes);
  }
  /// Stops, or takes up, watching for input. What had been received but not consumed comes first then.
  void set_paused(bool paused);
  [[nodiscard]] bool paused() const { return paused_; }
  /// Of the input that is being consumed.
  [[nodiscard]] TurnShare& turn_share() { return turn_share_; }
  [[nodiscard]] std::chrono::milliseconds handshake_time() const { return owner_.handshake_time(); }
  void close_late(const std::string& why) {
    if (ignored()) return close(ignored_for_);
    owner_.handshake_late();
    close(why);
  }
  /// What a stranger says is nonsense, and many strangers come and go: closed it would come again at once, so
  /// it waits, unheard, until its time for the handshake is over or its place is wanted. False: it is to be
  /// closed, for few come.
  bool ignore(const std::string& why);
  [[nodiscard]] bool ignored() const { return !ignored_for_.empty(); }
  /// The connection ends as soon as the current callback is over. The first reason stands.
  void fail(const std::string& why);
  /// Ends the connection as `fail` does, because there is no memory for its bytes.
  void fail_for_memory() { fail("there is no memory for it"); }
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
  /// A command frame's body; answers PING itself, of many that came together the last, and ends the
  /// connection when nothing comes for the TTL of the last.
  void handle_command(ByteView body);
  /// Passes buffered output on and watches for room if not all went.
  void flush_output() { flush_output_with({}); }
  /// As flush_output, and `behind` it straight from where it lies: only what the system does not take is
  /// copied.
  void flush_output_with(ByteView behind);
  /// Sends `bytes` at once, and with them `descriptors`, which the peer gets for itself; nothing may be
  /// buffered. Only over a Unix socket. False: they could not be sent.
  bool send_descriptors(ByteView bytes, std::span<const int> descriptors);
  /// From now on what comes and goes lies in this memory, and the socket only tells the end. Over a Unix
  /// socket, in clear, while nothing is buffered.
  void share(std::unique_ptr<session::SharedRings> rings, SharedWake wake, std::shared_ptr<void> place);
  [[nodiscard]] bool is_shared() const { return shared_ != nullptr; }
  /// The number of the connection's descriptor, for what wakes its peer; it stays the connection's.
  [[nodiscard]] int descriptor_number() const { return descriptor_.get(); }
  /// Whether the peer is a process of this machine, at a Unix socket.
  [[nodiscard]] bool is_local() const;
  /// What has been received last, and lies in memory that is shared, is wiped when it is given back.
  void wipe_shared() { wipes_shared_ = true; }

  /// Tells the peer that nothing more comes. What it sends is still received, so that what was sent last
  /// reaches it: a connection that is closed with unread input may take that away again.
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
  bool has_buffers_ = false;  // that the owner's budget knows of
  bool was_paused_ = false;   // since it last began to consume
  bool leftover_unseen_ =
      false;                  // input was left over, and not looked at: to be consumed before more is read
  bool reads_later_ = false;  // when it is its turn
  bool watched_ = false;
  bool wipes_shared_ = false;
  EventLoop::Interest interest_ = EventLoop::Interest::readable;
  EventLoop::TimerId handshake_deadline_ = 0;
  TurnShare turn_share_;
  SilenceLimit silence_;                                                // of the peer's PING
  std::array<std::byte, zmtp::ping_context_bytes_max> ping_context_{};  // of the last one
  std::size_t ping_context_bytes_ = 0;
  std::size_t low_water_ = 1;  // bytes that make the descriptor readable
  std::string failure_;
  std::string ignored_for_;
  std::vector<std::byte> leftover_;
  std::unique_ptr<WireCipher> cipher_;      // null: nothing is encrypted
  std::vector<std::byte> sealed_leftover_;  // of the wire's bytes, no whole unit
  std::unique_ptr<SharedWire> shared_;      // null: what comes and goes is the descriptor's
  OutputBuffer output_;                     // refers to cipher_ and shared_
};

}  // namespace lightq::broker
