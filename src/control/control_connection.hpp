/// Serves one client of the control socket: turns frames into requests and replies into frames. Layer:
/// control.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lightq/base/limits.hpp>

#include "admission/limit_counts.hpp"
#include "admission/token_bucket.hpp"
#include "net/request_source.hpp"
#include "zmtp/zmtp_connection.hpp"

namespace lightq::broker {

/// Replies as a REP socket does (RFC 28). All frames of a message up to the first empty one are its envelope.
/// Proxies and correlating clients identify the reply by it, so the envelope precedes the reply. A DEALER may
/// send requests without an envelope. Memory is bounded for any client: of a message, only the envelope and
/// the part that may be a request are kept. The connection stops reading from a client that does not read its
/// replies. Thread: the loop's.
class ControlConnection final : public ZmtpConnection {
 public:
  /// The maximum size of a message's envelope, with the headers of its frames.
  static constexpr std::size_t envelope_bytes_max = 4 * limits::KiB;

  /// The frames with which the reply to a message must begin.
  struct Envelope {
    std::uint64_t client = 0;
    std::string frames;     ///< as on the wire; only the empty frame if the envelope is too long
    bool too_long = false;  ///< the message must be refused
  };
  /// The part of a message that follows the envelope.
  struct Message {
    std::size_t parts = 0;
    std::uint64_t bytes = 0;  ///< length of the first part
    std::string_view body;    ///< the first part, at most `request_bytes_max` and one byte
  };
  class Requests {
   public:
    virtual ~Requests() = default;
    /// Called with one message. Its body is valid only during the call.
    virtual void requested(const Envelope& from, const Message& message) = 0;
    /// Called when the number of unread reply bytes has changed from `before` to unread(). May call give_up.
    virtual void unread_changed(ControlConnection& /*client*/, std::size_t /*before*/) {}
    /// Called when a limit makes the connection end.
    virtual void limit_reached(Limit limit) = 0;
  };

  ControlConnection(EventLoop& loop, UniqueFd descriptor, Owner& owner, std::vector<std::byte>& scratch,
                    std::uint64_t id, Requests& requests, RequestSource source = {},
                    std::size_t request_bytes_max = limits::request_bytes_max)
      : ZmtpConnection(loop, std::move(descriptor), owner, scratch),
        id_(id),
        requests_(requests),
        source_(std::move(source)),
        request_bytes_max_(request_bytes_max) {}

  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] const RequestSource& source() const { return source_; }
  /// Returns the token bucket of requests that are served regardless of other requests from the same source.
  [[nodiscard]] Tokens& free_requests() { return free_requests_; }
  void request_begins() { ++requests_under_way_; }
  void request_ends() { --requests_under_way_; }
  [[nodiscard]] bool waits_for_answers() const { return requests_under_way_ > 0; }
  /// Sends a reply behind the envelope of its request. Does nothing if the client has disconnected.
  void answer(const Envelope& envelope, std::string_view text);
  /// Returns true if every reply so far has been passed to the operating system.
  [[nodiscard]] bool all_sent() const { return output().buffered() == 0; }
  /// Returns the bytes of unread replies; 0 for a connection that was given up.
  [[nodiscard]] std::size_t unread() const { return unread_; }
  /// Closes the connection because its client does not read. Its unread bytes no longer count.
  void give_up();

 protected:
  [[nodiscard]] std::optional<ZmtpHandshake> make_handshake() const override {
    ZmtpHandshake handshake("ROUTER", {"REQ", "DEALER", "ROUTER"});
    handshake.take_bodies_up_to(limits::request_bytes_hard_max);
    return handshake;
  }
  void on_open() override {}
  std::size_t consume(std::span<std::byte> bytes) override;
  void on_writable() override;

 private:
  /// How the body of the current frame is treated.
  enum class Body { none, command, envelope, request, dropped };
  std::size_t take_frames(std::span<std::byte> bytes);
  std::size_t begin_frame(ByteView bytes);
  void begin_part(const zmtp::FrameHeader& header);
  void end_envelope();
  void keep_in_envelope(std::string_view body);
  [[nodiscard]] bool begin_in_envelope(std::uint64_t body_bytes);
  void take_body(ByteView bytes);
  void end_frame();
  void end_message();
  void append_frame(std::string_view body, bool more);
  void send_answers();
  void look_at_output();
  void append_to_body(ByteView bytes);

  const std::uint64_t id_;
  Requests& requests_;
  const RequestSource source_;
  const std::size_t request_bytes_max_;
  std::size_t unread_ = 0;  // as reported by unread_changed
  Tokens free_requests_;
  std::size_t requests_under_way_ = 0;
  bool consumes_ = false;
  Body frame_ = Body::none;
  std::uint64_t frame_left_ = 0;  // bytes of its body that have not arrived
  bool frame_more_ = false;
  std::size_t parts_ = 0;   // parts of the current message; reset when its envelope ends
  bool delimiter_ = false;  // true after the empty frame that ends the envelope
  bool envelope_too_long_ = false;
  std::string envelope_;          // possible envelope, in its wire form
  std::uint64_t body_bytes_ = 0;  // length of the first part behind the envelope
  std::string body_;              // the received bytes of that part
  std::string command_;           // the received bytes of a command
};

}  // namespace lightq::broker
