/// A connection and a channel to RabbitMQ, over librabbitmq. Layer: bench peers.
#pragma once

#include <amqp.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <lightq/base/types.hpp>

#include "peers/peer.hpp"

namespace lightq::bench {

/// Returns the bytes of a text. Lifetime: the text's.
amqp_bytes_t amqp_bytes_of(const std::string& text);

/// Throws std::runtime_error for an error of the server, a lost connection, or a silence longer than
/// `peer_patience`. One thread.
class RabbitConnection {
 public:
  static constexpr amqp_channel_t channel = 1;

  /// Connects to a port of 127.0.0.1 as the user that exists by default, and opens the channel.
  explicit RabbitConnection(std::uint16_t port);

  [[nodiscard]] amqp_connection_state_t state() const { return state_.get(); }
  /// Throws if the last call that waits for a reply has failed.
  void check_reply(const char* what) const;
  static void check(const amqp_rpc_reply_t& reply, const char* what);
  static void check(int status, const char* what);
  /// Waits for the next frame. Returns nothing if none comes in time.
  std::optional<amqp_frame_t> frame(std::chrono::milliseconds wait);
  /// Frees the memory of frames that were read.
  void release() { amqp_maybe_release_buffers(state()); }
  /// Returns true if input has been read and not been returned.
  [[nodiscard]] bool has_input() const {
    return amqp_frames_enqueued(state()) != 0 || amqp_data_in_buffer(state()) != 0;
  }
  /// Closes the channel: the server has carried out all that was sent before.
  void close_channel();

 private:
  struct Free {
    void operator()(amqp_connection_state_t state) const { amqp_destroy_connection(state); }
  };
  std::unique_ptr<std::remove_pointer_t<amqp_connection_state_t>, Free> state_;
};

}  // namespace lightq::bench
