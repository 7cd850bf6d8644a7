/// The frames that a session sends, and the space that it has for them. Layer: session.
#pragma once

#include <cstddef>
#include <cstdint>

#include <lightq/base/limits.hpp>
#include <lightq/protocol/session_link.hpp>

#include "net/connection_life.hpp"
#include "net/connection_output.hpp"
#include "session/frame_output.hpp"
#include "session/session_carrier.hpp"
#include "zmtp/zmtp.hpp"

namespace lightq::broker {

/// Writes frames into the output of a session's connection, in messages if the carrier has messages. Knows
/// which frames and codecs the client accepts, and whether the client reads. SessionConnection owns it; the
/// channels and reads of the session call it. Thread: the reactor's.
class SessionOutput final : public FrameOutput {
 public:
  /// Lifetime: both outlive it.
  SessionOutput(ConnectionOutput& output, ConnectionLife& connection, SessionCarrier carrier)
      : output_(output), connection_(connection), carrier_(carrier) {}

  /// Sets the frames and codecs that the client accepts.
  void greet(const session::Hello& hello) {
    client_takes_bytes_ = hello.frame_bytes_max;
    client_codecs_ = hello.codecs;
  }
  /// Stops deliveries to a client that is considered busy, or resumes them.
  void set_quiet(bool quiet) { is_quiet_ = quiet; }
  /// Stops deliveries for good: the goodbye is sent.
  void end() { has_ended_ = true; }

  void append(ByteView frame) override;
  void deliver(ByteView head, ByteView rest) override;
  void out_of_memory_for_output() override { connection_.fail_for_memory(); }
  [[nodiscard]] bool has_room() const override {
    return connection_.is_open() && !connection_.failed() && !has_ended_ && !is_quiet_ &&
           output_.buffered() < bytes_max;
  }
  [[nodiscard]] std::uint32_t client_takes_bytes() const override { return client_takes_bytes_; }
  [[nodiscard]] CodecSet client_codecs() const override { return client_codecs_; }
  /// Returns true if the client wants to be told of acknowledgements that come too late.
  [[nodiscard]] bool client_hears_late() const { return says(session::hello_hears_late); }
  /// Returns true if the client keeps the secrets of its producer ids.
  [[nodiscard]] bool client_keeps_secrets() const { return says(session::keeps_producer_secrets); }
  /// Returns true if the client may be silent while it processes messages.
  [[nodiscard]] bool client_may_be_busy() const { return says(session::hello_may_be_busy); }
  /// Returns true if the client knows that the broker accepts dead messages.
  [[nodiscard]] bool client_knows_dead_letters() const { return says(session::hello_knows_dead_letters); }
  /// Returns true if the client tells which messages it has started, and has leases.
  [[nodiscard]] bool client_knows_leases() const { return says(session::hello_knows_leases); }

  /// Returns true if confirms may be sent: the client reads them.
  [[nodiscard]] bool may_confirm() const {
    return !connection_.failed() && !has_ended_ && output_.buffered() <= bytes_max;
  }
  /// Returns true if the client does not read its replies. Deliveries in the output do not count:
  /// acknowledgements must still be read. A stopped client must still be noticed.
  [[nodiscard]] bool has_unread_replies();
  [[nodiscard]] bool is_empty() const { return output_.buffered() == 0; }
  void flush() { output_.flush(); }
  /// Returns the bytes of frames sent so far.
  [[nodiscard]] std::uint64_t said_bytes() const { return said_bytes_; }
  /// Counts a frame that was sent in another way.
  void count_said(std::size_t bytes) { said_bytes_ += bytes; }
  /// Returns how many bytes the system has taken so far.
  [[nodiscard]] std::uint64_t sent_total() const { return output_.sent_total(); }

 private:
  static constexpr std::size_t bytes_max = 64 * limits::KiB;
  // Messages from this size on are sent without copying them into the output buffer.
  static constexpr std::size_t straight_from = 8 * limits::KiB;

  [[nodiscard]] bool says(std::uint32_t bit) const { return (client_codecs_.bits() & bit) != 0; }
  void append_message_header(std::size_t bytes);

  ConnectionOutput& output_;
  ConnectionLife& connection_;
  const SessionCarrier carrier_;
  std::uint32_t client_takes_bytes_ = 0;
  CodecSet client_codecs_;
  std::size_t delivered_bytes_ = 0;  // buffered when messages were last delivered
  std::uint64_t said_bytes_ = 0;
  bool is_quiet_ = false;
  bool has_ended_ = false;
};

inline void SessionOutput::append_message_header(std::size_t bytes) {
  if (carrier_ == SessionCarrier::stream) return;
  std::byte* const to = output_.extend(zmtp::frame_header_bytes_max);
  output_.shrink(zmtp::frame_header_bytes_max - zmtp::encode_frame_header(to, bytes, false));
}

inline void SessionOutput::append(ByteView frame) {
  connection_.with_memory([&] {
    append_message_header(frame.size());
    output_.append(frame);
    said_bytes_ += frame.size();
  });
}

inline void SessionOutput::deliver(ByteView head, ByteView rest) {
  if (!connection_.is_open() || connection_.failed() || has_ended_) return;
  connection_.with_memory([&] {
    append_message_header(head.size() + rest.size());
    said_bytes_ += head.size() + rest.size();
    output_.append(head);
    if (rest.size() >= straight_from) {
      output_.flush_with(rest);
    } else {
      output_.append(rest);
      if (output_.buffered() >= bytes_max) output_.flush();
    }
  });
  delivered_bytes_ = output_.buffered();
}

inline bool SessionOutput::has_unread_replies() {
  if (output_.buffered() == 0) delivered_bytes_ = 0;
  return output_.buffered() > bytes_max + delivered_bytes_;
}

}  // namespace lightq::broker
