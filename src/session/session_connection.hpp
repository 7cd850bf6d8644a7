/// One session: a client's connection and its channels. Layer: session.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <lightq/protocol/session_link.hpp>

#include "access/ticket.hpp"
#include "crypto/tls_context.hpp"
#include "net/connection.hpp"
#include "net/large_frame.hpp"
#include "net/turn_queue.hpp"
#include "session/channel_book.hpp"
#include "session/consume_side.hpp"
#include "session/memory_budget.hpp"
#include "session/produce_side.hpp"
#include "session/session_permits.hpp"
#include "session/session_port.hpp"
#include "session/zmtp_messages.hpp"

namespace lightq::broker {

/// Settings that apply to all sessions of a broker.
struct SessionSettings {
  std::uint64_t broker = 0;             ///< identifies this start of the broker
  std::uint32_t heartbeat_ms = 10'000;  ///< how often a client must give a sign of life; 0: never
  std::uint32_t channels_max = limits::session_channels_max;  ///< open at once on a session
  ReadLimits reads = {};
  MemoryBudget* memory = nullptr;   ///< for memory shared with clients; null: none is. Outlives the sessions
  const TlsContext* tls = nullptr;  ///< encrypts TCP sessions; null: unencrypted. Outlives the sessions
};

/// The carrier of a session's frames.
enum class SessionCarrier {
  stream,  ///< a byte stream of frames
  zmtp,    ///< messages of a ZeroMQ DEALER socket
};

/// A session over TCP, TLS, ZeroMQ or a Unix socket. docs/session.md.
/// Takes frames from the input, passes them to its produce and consume sides, and sends their replies. Owns
/// the channels and the permits of its tickets.
/// Bounded in bytes whatever the client does. The session is not read while a topic has no space, or while
/// the client does not read its replies. Nothing is delivered while the client does not read at all.
/// Implemented in session_connection.cpp, session_tickets.cpp (tickets), session_memory.cpp (shared memory)
/// and session_too_large.cpp (batches that are too long). Thread: the reactor's.
class SessionConnection final : public Connection, private SessionPort, private TurnQueue::Waiter {
 public:
  /// The calls that a session makes on its server.
  class Host {
   public:
    using Permit = SessionPermit;
    virtual ~Host() = default;
    /// Returns the ticket's permit, or nothing if the ticket is not or no longer valid.
    virtual std::optional<Permit> permit_of(std::string_view ticket) = 0;
    /// Returns true if the permit is still valid for its topic, which is `topic`, and for the groups in
    /// `scope`.
    [[nodiscard]] virtual bool is_good(const Permit& permit, const TopicRuntime& topic,
                                       const GroupScope& scope) const = 0;
    /// Returns true if the permit's holder may manage the topic's groups in `scope`.
    [[nodiscard]] virtual bool may_manage(const Permit& /*permit*/, const TopicRuntime& /*topic*/,
                                          const GroupScope& /*scope*/) const {
      return false;
    }
    /// Returns the topic's name, or an empty string if the topic does not or no longer exist.
    virtual std::string topic_name(TopicId topic) {
      const TopicRuntime* const found = find_topic(topic);
      return found == nullptr ? std::string() : std::string(found->definition().name.text());
    }
    /// Returns the topic, or null if it does not or no longer exist.
    virtual TopicRuntime* find_topic(TopicId topic) = 0;
    /// Admits one more connection of the user until the session ends, and returns an empty text. Otherwise
    /// returns the reason for the refusal.
    virtual std::string_view admit(std::uint64_t /*user*/) { return {}; }
    /// Counts an admitted session for this user too, which may be its first, and returns an empty text.
    /// Otherwise returns the reason for the refusal.
    virtual std::string_view admit_also(std::uint64_t /*user*/) { return {}; }
    virtual void limit_reached(Limit /*limit*/) {}
    /// Returns the queue that all sessions of the reactor share; null means that no session waits for a turn.
    virtual TurnQueue* turns() { return nullptr; }
    virtual void session_opened(SessionConnection& session) = 0;
    [[nodiscard]] virtual std::uint64_t message_bytes_max() const = 0;
    [[nodiscard]] virtual const SessionSettings& session_settings() const = 0;
  };

  /// `tls` encrypts the session; null means that it is not encrypted.
  SessionConnection(EventLoop& loop, UniqueFd descriptor, Owner& owner, std::vector<std::byte>& scratch,
                    Host& host, std::uint64_t id, SessionCarrier carrier, const TlsContext* tls = nullptr);
  ~SessionConnection() override;

  [[nodiscard]] std::uint64_t id() const { return id_; }
  /// Returns the name that the client has given itself.
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool greeted() const { return greeted_; }
  /// Returns the users whose tickets the session has shown. Empty if these are the administrator's only.
  [[nodiscard]] const std::set<std::uint64_t>& users() const { return users_; }
  [[nodiscard]] std::uint64_t held_by() const override { return users_.empty() ? 0 : *users_.begin(); }
  /// Returns true if the session was refused because its ticket was not valid.
  [[nodiscard]] bool refused() const { return refused_; }
  void on_ready() override;
  [[nodiscard]] bool has_ticket_for(TopicId topic) const;
  /// Removes tickets that permit nothing any more, and ends the channels that depended on them. Called after
  /// rights have changed, and not from within the session's own functions.
  void look_at_rights();
  /// Sends a goodbye, and closes the connection once it is sent.
  void end_session(session::Code code, const std::string& why) override;

  void on_turn() override;

 protected:
  [[nodiscard]] std::optional<ZmtpHandshake> make_handshake() const override;
  [[nodiscard]] std::unique_ptr<WireCipher> make_cipher() const override;
  void on_open() override;
  std::size_t consume(std::span<std::byte> bytes) override;
  std::span<std::byte> large_frame_space() override { return large_.space(); }
  [[nodiscard]] std::size_t held_bytes() const override { return channels_.held_bytes(); }
  [[nodiscard]] std::size_t large_frame_memory() const override { return large_.memory_bytes(); }
  void release_large_frame() override { large_.release_memory(); }
  void large_frame_received(std::size_t bytes) override;
  std::size_t take_from(SharedWire& wire, std::size_t bytes_max) override;
  [[nodiscard]] bool is_unauthenticated() const override { return !greeted_; }
  [[nodiscard]] std::size_t missing(ByteView left) const override;
  void on_writable() override { after_output(); }
  void on_turn_end() override { after_output(); }

 private:
  // SessionPort
  Channel* addressee(const session::FrameHeader& header, Channel::Kind kind) override;
  TopicRuntime* permitted(const std::string& topic, EndpointRole role, const GroupScope& scope,
                          std::uint64_t* user = nullptr) override;
  TopicRuntime* find_topic(TopicId topic) override { return host_.find_topic(topic); }
  [[nodiscard]] std::uint32_t body_bytes_max() const override;
  void limit_reached(Limit limit) override { host_.limit_reached(limit); }
  void append(ByteView frame) override;
  void deliver(ByteView head, ByteView rest) override;
  void out_of_memory_for_output() override { fail_for_memory(); }
  void flush() override { loop().call_last(*this); }
  [[nodiscard]] bool has_room() const override;
  [[nodiscard]] std::uint32_t client_takes_bytes() const override { return client_takes_bytes_; }
  [[nodiscard]] CodecSet client_codecs() const override { return client_codecs_; }
  [[nodiscard]] bool client_hears_late() const override {
    return (client_codecs_.bits() & session::hello_hears_late) != 0;
  }
  [[nodiscard]] bool may_manage(const TopicRuntime& topic, const GroupScope& scope) const override;
  bool has_turn() override;
  void spend(std::uint64_t bytes) override;
  void work_soon() override { loop().call_soon(*this); }
  void pause_reading() override { set_paused(true); }
  void end_channel(Channel& channel, session::Code code, const std::string& why) override;
  [[nodiscard]] bool ending() const override { return ending_; }
  [[nodiscard]] bool leaving() const override { return leaving_; }

  [[nodiscard]] bool reading() const { return !failed() && !paused() && !ending_; }
  void arm_large_timer();
  bool begin_message(ByteView bytes, std::size_t& at);
  void confirm();
  bool take_frame(std::span<std::byte> bytes, std::size_t& at);
  [[nodiscard]] std::optional<session::FrameHeader> produces_too_much(ByteView left) const;
  bool refuse_too_large(const session::FrameHeader& header, ByteView left, std::size_t& at);
  std::size_t take_batch_from(SharedWire& wire);
  void take_whole(const session::FrameHeader& header, std::span<std::byte> frame);
  void forget_ticket(std::span<std::byte> frame);
  bool check_address(const session::FrameHeader& header);
  void handle(const session::FrameHeader& header, std::span<std::byte> body);
  void on_hello(const session::FrameHeader& header, ByteView body);
  void on_present(const session::FrameHeader& header, ByteView body);
  [[nodiscard]] std::string_view admit_also(std::uint64_t user);
  void on_share(const session::FrameHeader& header, ByteView body);
  void share(const session::FrameHeader& header, const session::Share& wanted);
  void on_close(const session::FrameHeader& header);
  void on_goodbye();
  void append_message_header(std::size_t bytes);
  void hear(std::size_t bytes);
  void after_input();
  void after_output();
  void finish_settled();
  [[nodiscard]] bool too_many_answers() const;
  void look_at_pause();
  void arm_silence_timer();
  [[nodiscard]] bool is_busy() const;
  void send_heartbeat();
  void arm_heartbeat_timer();
  void arm_pong_timer();

  Host& host_;
  const std::uint64_t id_;
  const SessionCarrier carrier_;
  const TlsContext* const tls_;
  const EventLoop::Clock::time_point began_ = EventLoop::Clock::now();
  ZmtpMessages messages_;
  std::string name_;
  bool greeted_ = false;
  bool refused_ = false;
  std::set<std::uint64_t> users_;
  bool leaving_ = false;  // the client has said goodbye
  bool ending_ = false;   // the broker has said goodbye
  SessionPermits permits_;
  bool asked_to_share_ = false;  // by the last frame taken
  ChannelBook channels_;
  ProduceSide producing_;
  ConsumeSide consuming_;
  LargeFrame large_;
  bool large_used_ = false;  // since the timer last checked

  std::uint32_t client_takes_bytes_ = 0;
  CodecSet client_codecs_;
  std::size_t delivered_bytes_ = 0;  // buffered when messages were last delivered

  std::uint32_t client_heartbeat_ms_ = 0;
  EventLoop::Clock::time_point heard_;
  bool frame_taken_ = false;  // since the last check
  bool is_quiet_ = false;  // considered busy: the broker sends nothing more until the client sends something
  std::size_t unheard_bytes_ = 0;    // of an incomplete frame, received since heard_
  std::size_t left_bytes_ = 0;       // of the input, unused at the last check
  std::uint64_t skipped_bytes_ = 0;  // still to come of a frame that is skipped
  std::size_t command_bytes_ = 0;    // of ZMTP commands in the input: no sign of life of the client
  std::uint64_t sent_seen_ = 0;      // output's total at the silence timer's last check
  std::uint64_t said_bytes_ = 0;     // of sent frames
  std::uint64_t said_seen_ = 0;      // said_bytes_ at the heartbeat timer's last check
  EventLoop::TimerId hello_timer_ = 0;
  EventLoop::TimerId silence_timer_ = 0;
  EventLoop::TimerId heartbeat_timer_ = 0;
  EventLoop::TimerId pong_timer_ = 0;
  unsigned pongs_ = 0;
  EventLoop::TimerId end_timer_ = 0;
  EventLoop::TimerId large_timer_ = 0;
};

}  // namespace lightq::broker
