/// One client of the control socket: frames become requests, answers become frames. Layer: control.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lightq/base/limits.hpp>
#include <lightq/base/wipe.hpp>

#include "broker/control/request_rate.hpp"
#include "broker/endpoint/connection.hpp"
#include "broker/endpoint/limit_counts.hpp"
#include "broker/endpoint/request_source.hpp"

namespace lightq::broker {

/// Answers as a REP socket does (RFC 28): all frames of a message up to the first empty one are its envelope,
/// by which proxies and correlating clients know the answer, and come back in front of it. A DEALER may send
/// requests without any. Bounded in bytes whatever the client does: of a message only the envelope and the
/// part that may be a request are kept, and a client that does not read its answers is not read from. The
/// loop's thread.
class ControlConnection final : public Connection {
 public:
  /// What a message's envelope may take, its frames' headers included.
  static constexpr std::size_t envelope_bytes_max = 4 * limits::KiB;

  /// How an answer to a message must begin.
  struct Envelope {
    std::uint64_t client = 0;
    std::string frames;     ///< as they go onto the wire; of one that is too long the empty frame alone
    bool too_long = false;  ///< the message is to be refused
  };
  /// What came after the envelope.
  struct Message {
    std::size_t parts = 0;
    std::uint64_t bytes = 0;  ///< of the first part
    std::string_view body;    ///< of the first part, at most `request_bytes_max` and one byte
  };
  class Requests {
   public:
    virtual ~Requests() = default;
    /// Called with one message, whose body is valid during the call.
    virtual void requested(const Envelope& from, const Message& message) = 0;
    /// So many bytes of answers were unread before, and unread() are now. May call give_up.
    virtual void unread_changed(ControlConnection& /*client*/, std::size_t /*before*/) {}
    /// The connection ends for it.
    virtual void limit_reached(Limit limit) = 0;
  };

  ControlConnection(EventLoop& loop, UniqueFd descriptor, Owner& owner, std::vector<std::byte>& scratch,
                    std::uint64_t id, Requests& requests, RequestSource source = {},
                    std::size_t request_bytes_max = limits::request_bytes_max)
      : Connection(loop, std::move(descriptor), owner, scratch),
        id_(id),
        requests_(requests),
        source_(std::move(source)),
        request_bytes_max_(request_bytes_max) {
    wipe_input();          // it may hold passwords
    output().wipe_sent();  // and the answers to joins tickets
  }
  ~ControlConnection() override {
    wipe_text(body_);
    wipe_text(envelope_);
  }

  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] const RequestSource& source() const { return source_; }
  /// Of requests that go whatever else comes from its source.
  [[nodiscard]] Allowance& allowance() { return allowance_; }
  void request_begins() { ++requests_under_way_; }
  void request_ends() { --requests_under_way_; }
  [[nodiscard]] bool waits_for_answers() const { return requests_under_way_ > 0; }
  /// Sends an answer behind its request's envelope. Nothing happens once the client has gone.
  void answer(const Envelope& envelope, std::string_view text);
  /// The operating system has every answer given so far.
  [[nodiscard]] bool all_sent() const { return output().buffered() == 0; }
  /// Of answers; of a connection that was given up, none.
  [[nodiscard]] std::size_t unread() const { return unread_; }
  /// Its client does not read: it ends soon, and what it had unread counts no more.
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
  /// What is being done with the body of the frame under way.
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
  std::size_t unread_ = 0;  // as it was told
  Allowance allowance_;
  std::size_t requests_under_way_ = 0;
  bool consumes_ = false;
  Body frame_ = Body::none;
  std::uint64_t frame_left_ = 0;  // bytes of its body still to come
  bool frame_more_ = false;
  std::size_t parts_ = 0;   // of the message under way, those of its envelope not counted once it has ended
  bool delimiter_ = false;  // the empty frame that ends the envelope has come
  bool envelope_too_long_ = false;
  std::string envelope_;          // what may be it, as it goes onto the wire
  std::uint64_t body_bytes_ = 0;  // of the message's first part behind the envelope
  std::string body_;              // that part, as far as it came
  std::string command_;           // as far as it came
};

}  // namespace lightq::broker
