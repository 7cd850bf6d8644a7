/// One session: a client's connection and its channels. Layer: session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <lightq/protocol/session_link.hpp>

#include "crypto/tls_context.hpp"
#include "net/turn_queue.hpp"
#include "session/channel_book.hpp"
#include "session/consume_side.hpp"
#include "session/frame_reader.hpp"
#include "session/produce_side.hpp"
#include "session/session_carrier.hpp"
#include "session/session_channels.hpp"
#include "session/session_heartbeats.hpp"
#include "session/session_host.hpp"
#include "session/session_life.hpp"
#include "session/session_output.hpp"
#include "session/session_settings.hpp"
#include "session/session_tickets.hpp"
#include "zmtp/zmtp_connection.hpp"

namespace lightq::broker {

/// A session over TCP, TLS, ZeroMQ or a Unix socket. docs/session.md.
/// Takes frames from the input and calls the part of the session that each is for: the tickets, the produce
/// and consume sides, or a channel. Decides when the session reads and when it ends. Bounded in bytes
/// whatever the client does. The session is not read while a topic has no space, or while the client does not
/// read its replies. Nothing is delivered while the client does not read at all. SessionServer owns it.
/// Thread: the reactor's.
class SessionConnection final : public ZmtpConnection, private TurnQueue::Waiter {
 public:
  using Host = SessionHost;

  /// `tls` encrypts the session; null means that it is not encrypted.
  SessionConnection(EventLoop& loop, UniqueFd descriptor, Owner& owner, std::vector<std::byte>& scratch,
                    Host& host, std::uint64_t id, SessionCarrier carrier, const TlsContext* tls = nullptr);
  ~SessionConnection() override;

  [[nodiscard]] std::uint64_t id() const { return id_; }
  /// Returns the name that the client has given itself.
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const SessionTickets& tickets() const { return tickets_; }
  /// Removes tickets that permit nothing any more, and ends the channels that depended on them. Called after
  /// rights have changed, and not from within the session's own functions.
  void look_at_rights();
  /// Sends a goodbye, and closes the connection once it is sent.
  void end_session(session::Code code, const std::string& why);

  void on_ready() override;
  void on_turn() override { after_output(); }

 protected:
  [[nodiscard]] std::optional<ZmtpHandshake> make_handshake() const override;
  [[nodiscard]] std::unique_ptr<WireCipher> make_cipher() const override;
  void on_open() override;
  std::size_t consume(std::span<std::byte> bytes) override;
  void large_frame_received(std::span<std::byte> frame, std::size_t bytes) override;
  std::size_t take_from(SharedWire& wire, std::size_t bytes_max) override;
  [[nodiscard]] std::size_t held_bytes() const override { return book_.held_bytes(); }
  [[nodiscard]] std::uint64_t held_by() const override { return tickets_.first_user(); }
  [[nodiscard]] bool is_unauthenticated() const override { return !tickets_.is_admitted(); }
  [[nodiscard]] std::size_t missing(ByteView left) const override {
    return reader_.missing(left, body_bytes_max_);
  }
  void on_writable() override { after_output(); }
  void on_turn_end() override { after_output(); }

 private:
  /// Returns true if frames may be taken from the input.
  [[nodiscard]] bool reads() { return !life().failed() && !paused() && !session_life_.is_ending(); }
  bool take(const FrameReader::Next& next, std::size_t& at);
  void begin_large(const FrameReader::Next& next);
  void arm_large_timer();
  void take_whole(const session::FrameHeader& header, std::span<std::byte> frame);
  std::size_t take_batch_from(SharedWire& wire);
  void handle(const session::FrameHeader& header, std::span<std::byte> body);
  void after_frame();
  void on_hello(const session::FrameHeader& header, ByteView body);
  void on_present(const session::FrameHeader& header, ByteView body);
  void on_share(const session::FrameHeader& header, ByteView body);
  void share(const session::FrameHeader& header, const session::Share& wanted);
  void on_goodbye();
  void after_input();
  void after_output();
  void go_on();
  void look_at_pause();
  void arm_pong_timer();

  Host& host_;
  const std::uint64_t id_;
  const TlsContext* const tls_;
  const std::uint32_t body_bytes_max_;  // the longest frame body that the session accepts
  const EventLoop::Clock::time_point began_ = EventLoop::Clock::now();
  std::string name_;
  SessionTickets tickets_;
  SessionLife session_life_;
  SessionOutput frames_;
  ChannelBook book_;
  SessionChannels channels_;
  ProduceSide producing_;
  ConsumeSide consuming_;
  FrameReader reader_;
  SessionHeartbeats heartbeats_;
  bool asked_to_share_ = false;  // by the last frame taken
  bool large_used_ = false;      // the memory for large frames, since the timer last checked
  std::size_t left_bytes_ = 0;   // of the input, unused at the last check
  unsigned pongs_ = 0;
  EventLoop::TimerId hello_timer_ = 0;
  EventLoop::TimerId pong_timer_ = 0;
  EventLoop::TimerId end_timer_ = 0;
  EventLoop::TimerId large_timer_ = 0;
};

}  // namespace lightq::broker
