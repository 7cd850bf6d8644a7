/// Parses the bytes that a ZeroMQ DEALER receives: the handshake, and messages in frames. docs/session.md,
/// "Transport". Layer: client.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/protocol/zmtp.hpp>

namespace lightq::inline v1 {

/// The receiving state of a DEALER without encryption (mechanism NULL) that talks to a ROUTER. Does no I/O,
/// and keeps no bytes of messages. For one thread.
///
///     greeting ─► READY ─► messages, commands
class ZmtpDealer {
 public:
  /// A message longer than `message_bytes_max` ends the connection. 0: any length.
  explicit ZmtpDealer(std::uint64_t message_bytes_max = 0)
      : message_bytes_max_(message_bytes_max == 0 ? UINT64_MAX : message_bytes_max) {}

  /// Appends the greeting that this side sends first.
  static void begin(std::vector<std::byte>& output) {
    const auto said = zmtp::greeting();
    output.insert(output.end(), said.begin(), said.end());
  }
  /// Takes the handshake off the front of `bytes`, and returns how many bytes it has used. The caller passes
  /// the others again, with more bytes behind them. Appends this side's part of the handshake to `output`.
  /// Errors: invalid_request, if the peer is no ROUTER that speaks unencrypted ZMTP 3; the sentence names the
  /// cause.
  Result<std::size_t> introduce(ByteView bytes, std::vector<std::byte>& output) {
    std::size_t used = 0;
    if (state_ == State::greeting) {
      Result<std::size_t> greeted = take_greeting(bytes, output);
      if (!greeted || *greeted == 0) return greeted;
      used = *greeted;
    }
    if (state_ != State::ready) return used;
    Result<std::size_t> taken = take_ready(bytes.subspan(used));
    if (!taken) return taken;
    return used + *taken;
  }
  /// Returns true once the handshake is complete.
  [[nodiscard]] bool complete() const { return state_ == State::complete; }

  struct Taken {
    std::size_t used = 0;  ///< bytes taken off the input
    std::size_t got = 0;   ///< bytes of messages, written to `to`
  };
  /// Takes frames off the front of `bytes`, and writes the bytes of messages to `to`. The caller passes
  /// unused bytes again, with more bytes behind them. Stops when `to` is full, when `bytes` end, or when the
  /// connection is broken (see `broken`). Empty messages are skipped. Requires: the handshake is complete.
  Taken take(ByteView bytes, std::span<std::byte> to) {
    Taken taken;
    while (!broken_) {
      if (left_ > 0) {
        const std::size_t room = std::min(bytes.size() - taken.used, to.size() - taken.got);
        const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(left_, room));
        if (part == 0) break;
        std::memcpy(to.data() + taken.got, bytes.data() + taken.used, part);
        taken.used += part;
        taken.got += part;
        left_ -= part;
        continue;
      }
      const std::size_t used = take_frame(bytes.subspan(taken.used));
      if (used == 0) break;
      taken.used += used;
    }
    return taken;
  }
  /// Returns how many bytes of the current message are still missing; 0 between messages.
  [[nodiscard]] std::uint64_t left() const { return left_; }
  /// Records that the caller has received `bytes` of the current message itself, without `take`.
  void skip(std::size_t bytes) {
    assert(bytes <= left_);
    left_ -= bytes;
  }
  /// Returns why nothing more can be taken: closed (the peer sent ERROR) or invalid_request. Nothing while it
  /// can.
  [[nodiscard]] const std::optional<Error>& broken() const { return broken_; }

  /// Returns true if the peer has sent a PING since the last PONG.
  [[nodiscard]] bool owes_pong() const { return owes_pong_; }
  /// Appends the PONG for the last PING.
  void append_pong(std::vector<std::byte>& output) {
    owes_pong_ = false;
    zmtp::append_command(output, "PONG", ByteView(ping_context_).first(ping_context_bytes_));
  }

 private:
  enum class State { greeting, ready, complete };

  static Error invalid(std::string sentence) { return {ErrorCode::invalid_request, std::move(sentence)}; }
  /// Returns a text from the peer, cut at 64 characters and with '?' for unprintable ones.
  static std::string quoted(std::string_view text) {
    constexpr std::size_t shown_bytes_max = 64;
    std::string shown(text.substr(0, shown_bytes_max));
    for (char& c : shown)
      if (c < ' ' || c > '~') c = '?';
    return "'" + shown + "'";
  }

  Result<std::size_t> take_greeting(ByteView bytes, std::vector<std::byte>& output) {
    switch (zmtp::check_greeting(bytes)) {
      case zmtp::GreetingOutcome::incomplete: return std::size_t{0};
      case zmtp::GreetingOutcome::not_zmtp: return invalid("the peer does not speak ZeroMQ");
      case zmtp::GreetingOutcome::old_version: return invalid("the peer speaks a ZeroMQ older than 4.0");
      case zmtp::GreetingOutcome::valid: break;
    }
    if (zmtp::mechanism_of(bytes) != zmtp::Mechanism::null)
      return invalid("the peer has another security mechanism than NULL");
    zmtp::append_ready(output, "DEALER");
    state_ = State::ready;
    return zmtp::greeting_bytes;
  }

  Result<std::size_t> take_ready(ByteView bytes) {
    zmtp::FrameHeader header;
    const auto outcome = zmtp::parse_frame_header(bytes, header);
    if (outcome == zmtp::FrameOutcome::incomplete) return std::size_t{0};
    if (outcome == zmtp::FrameOutcome::invalid || !header.command ||
        header.body_bytes > zmtp::command_bytes_max) {
      return invalid("a ZeroMQ handshake without READY");
    }
    const std::size_t whole = header.header_bytes + static_cast<std::size_t>(header.body_bytes);
    if (bytes.size() < whole) return std::size_t{0};
    const auto command = zmtp::parse_command(bytes.first(whole).subspan(header.header_bytes));
    if (command && command->name == "ERROR")
      return invalid("the broker refuses the connection: " + quoted(zmtp::reason_of_error(command->data)));
    if (!command || command->name != "READY") return invalid("a ZeroMQ handshake without READY");
    const auto type = zmtp::socket_type_of_ready(command->data);
    if (type != "ROUTER")
      return invalid("a ZeroMQ socket of type " + quoted(type.value_or("?")) + ", not a ROUTER");
    state_ = State::complete;
    return whole;
  }

  /// Takes a command, or the header of a message, and returns its length. Returns 0 if it is incomplete or
  /// the connection is broken.
  std::size_t take_frame(ByteView bytes) {
    zmtp::FrameHeader header;
    const auto outcome = zmtp::parse_frame_header(bytes, header);
    if (outcome == zmtp::FrameOutcome::incomplete) return 0;
    if (outcome == zmtp::FrameOutcome::invalid) return end("a malformed ZeroMQ frame");
    if (header.command) return take_command(bytes, header);
    if (header.more) return end("the broker sent a message of several parts");
    if (header.body_bytes > message_bytes_max_) {
      return end("the broker sent a message of " + std::to_string(header.body_bytes) +
                 " bytes, which is longer than " + std::to_string(message_bytes_max_));
    }
    left_ = header.body_bytes;
    return header.header_bytes;
  }
  std::size_t take_command(ByteView bytes, const zmtp::FrameHeader& header) {
    if (header.body_bytes > zmtp::command_bytes_max) return end("a ZeroMQ command that is too long");
    const std::size_t whole = header.header_bytes + static_cast<std::size_t>(header.body_bytes);
    if (bytes.size() < whole) return 0;
    const auto command = zmtp::parse_command(bytes.first(whole).subspan(header.header_bytes));
    if (!command) return end("a malformed ZeroMQ command");
    if (command->name == "ERROR") {
      broken_ = Error{ErrorCode::closed,
                      "the broker ended the connection: " + quoted(zmtp::reason_of_error(command->data))};
      return 0;
    }
    if (command->name == "PING") {
      if (command->data.size() < zmtp::ping_ttl_bytes) return end("a malformed PING");
      const ByteView context = command->data.subspan(zmtp::ping_ttl_bytes);
      ping_context_bytes_ = std::min(context.size(), ping_context_.size());
      std::copy_n(context.begin(), ping_context_bytes_, ping_context_.begin());
      owes_pong_ = true;
    }
    return whole;  // other commands mean nothing to a DEALER
  }
  std::size_t end(std::string sentence) {
    broken_ = invalid(std::move(sentence));
    return 0;
  }

  std::uint64_t message_bytes_max_;
  State state_ = State::greeting;
  std::uint64_t left_ = 0;
  std::optional<Error> broken_;
  bool owes_pong_ = false;
  std::array<std::byte, zmtp::ping_context_bytes_max> ping_context_{};
  std::size_t ping_context_bytes_ = 0;
};

}  // namespace lightq::inline v1
