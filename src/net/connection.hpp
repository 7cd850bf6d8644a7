/// The connection of one peer: opens it, reads from it, and closes it. Layer: net.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "admission/buffer_budget.hpp"
#include "admission/turn_share.hpp"
#include "net/connection_input.hpp"
#include "net/connection_life.hpp"
#include "net/connection_memory.hpp"
#include "net/connection_output.hpp"
#include "net/connection_transport.hpp"
#include "net/event_loop.hpp"
#include "net/framing.hpp"
#include "net/silence_limit.hpp"
#include "net/socket.hpp"

namespace lightq::broker {

/// Runs one connection: answers the loop's events, makes the handshake, and moves input from the transport to
/// the framing, which derived classes implement. Its parts do the rest: ConnectionTransport has the socket
/// and shared memory, ConnectionInput the bytes that are not consumed, ConnectionOutput sends, ConnectionLife
/// knows how it stands and why it ends, ConnectionMemory counts its bytes. Thread: the reactor's.
class Connection : public EventLoop::Source, protected Framing {
 public:
  /// The object that keeps the connection. Each event is reported at most once.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void connection_opened(Connection& connection) = 0;
    /// Called when the connection ends, as its last call. The connection has left the loop by then. The owner
    /// destroys it later (EventLoop::destroy_later), never within this call.
    virtual void connection_closed(Connection& connection, const std::string& why) = 0;
    /// Returns the time from the connection's start to the end of the handshake.
    [[nodiscard]] virtual std::chrono::milliseconds handshake_time() const = 0;
    /// Called when the handshake took longer than handshake_time. The connection is closed then.
    virtual void handshake_late() {}
    /// Returns true if many unauthenticated peers connect and disconnect (AcceptBudget::crowded).
    [[nodiscard]] virtual bool crowded() { return false; }
    /// Returns the bound on the memory of large messages. Null: none.
    [[nodiscard]] virtual BufferBudget* buffers() { return nullptr; }
  };

  /// `scratch`: the buffer in which input is received. All connections of a thread share it.
  Connection(EventLoop& loop, UniqueFd descriptor, Owner& owner, std::vector<std::byte>& scratch);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() override;

  /// Sends the first bytes of the handshake and waits for the peer's. Opens immediately if there is no
  /// handshake. Returns false if the loop could not watch the connection.
  bool start();
  [[nodiscard]] bool is_open() const { return life_.is_open(); }
  /// Returns true if the connection has been open, even if it has ended since.
  [[nodiscard]] bool was_open() const { return life_.was_open(); }
  /// Returns true if the peer has closed its side. Some of its bytes may still be unread.
  [[nodiscard]] bool peer_gone() const { return transport_.peer_gone(); }
  /// Ends the connection. Calls the owner's connection_closed within this call. Requires: not called within a
  /// callback of this connection.
  void close(const std::string& why);
  /// Returns true if bytes were received and not consumed, here or in the operating system.
  [[nodiscard]] bool has_unread_input() const;
  void release_idle_memory() { memory_.release(); }

  void on_ready() override;
  void on_event(EventLoop::Readiness readiness) override;
  /// Ends the connection.
  bool out_of_memory() override;
  bool take_woken() override { return transport_.is_shared() && transport_.shared().take_woken(); }

 protected:
  [[nodiscard]] ConnectionLife& life() { return life_; }
  [[nodiscard]] const ConnectionLife& life() const { return life_; }
  [[nodiscard]] ConnectionInput& input() { return input_; }
  [[nodiscard]] ConnectionOutput& output() { return output_; }
  [[nodiscard]] const ConnectionOutput& output() const { return output_; }
  [[nodiscard]] ConnectionTransport& transport() { return transport_; }
  [[nodiscard]] EventLoop& loop() { return loop_; }

  /// Stops or resumes reading. After a resume, bytes that were received but not consumed come first.
  void set_paused(bool paused);
  [[nodiscard]] bool paused() const { return transport_.is_paused(); }
  [[nodiscard]] std::chrono::milliseconds handshake_time() const { return owner_.handshake_time(); }
  /// Closes the connection, because the peer has not authenticated in time.
  void close_late(const std::string& why);
  /// Parks a peer that sent nonsense, if many unauthenticated peers connect and disconnect. A closed peer
  /// would reconnect immediately. A parked peer waits unread until its handshake time is over or another peer
  /// needs its place. Returns false if few peers connect; then the caller closes the connection.
  bool park(const std::string& why);
  /// Ends the connection if nothing arrives for `most` while it is read; zero: never. `announced_by` names
  /// the message of the peer that sets the limit.
  void limit_silence(std::chrono::milliseconds most, const char* announced_by);
  /// From now on input and output go through shared memory, and the socket only reports the end. See
  /// ConnectionTransport::share. Requires: a Unix socket without encryption, and no buffered output.
  void share(std::unique_ptr<session::SharedRings> rings, SharedWake wake, std::shared_ptr<void> place);

 private:
  void encrypt_with(std::unique_ptr<WireCipher> cipher);
  void read_at_start();
  void read();
  void read_sealed();
  void read_shared();
  void received(std::span<std::byte> large, std::size_t bytes);
  void received_sealed(std::span<std::byte> wire);
  void pass_on(std::span<std::byte> bytes);
  void consume_input(std::span<std::byte> bytes);
  void consume_leftover();
  std::size_t take_handshake(ByteView bytes);
  void wait_for_missing();
  void opened();

  EventLoop& loop_;
  Owner& owner_;
  ConnectionLife life_;
  ConnectionTransport transport_;
  ConnectionInput input_;
  ConnectionOutput output_;  // refers to the transport's shared memory and the input's cipher
  ConnectionMemory memory_;
  Handshake* handshake_ = nullptr;  // null: none
  EventLoop::TimerId handshake_deadline_ = 0;
  SilenceLimit silence_;
  bool reads_later_ = false;  // at the connection's next turn
};

}  // namespace lightq::broker
