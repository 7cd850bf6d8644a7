/// A message received over a plain ZeroMQ socket. Layer: client.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <zmq.hpp>

#include <lightq/base/types.hpp>

namespace lightq::inline v1 {

/// Owns one message's bytes; move-only. A message may have any bytes, or none. One thread at a time.
class Message {
 public:
  Message() = default;
  explicit Message(zmq::message_t frame) : frame_(std::move(frame)) {}

  /// Returns the message's bytes. Lifetime: valid until the message is moved or destroyed.
  [[nodiscard]] ByteView payload() const { return {frame_.data<std::byte>(), frame_.size()}; }
  /// Returns the message's bytes as text.
  [[nodiscard]] std::string_view text() const { return as_text(payload()); }
  [[nodiscard]] std::size_t size() const { return frame_.size(); }

 private:
  zmq::message_t frame_;
};

}  // namespace lightq::inline v1
