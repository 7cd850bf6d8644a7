/// One producer's connection (its PUSH socket): packs frames into batches of the topic's log. Layer:
/// plain.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include <lightq/base/batch.hpp>

#include "topic/topic_endpoints.hpp"
#include "zmtp/zmtp_connection.hpp"

namespace lightq::broker {

/// A producer's connection. Its memory is bounded for any input: while the log is full, it keeps at most one
/// input, and further messages wait in the producer's own socket.
class PlainProducerConnection final : public ZmtpConnection {
 public:
  PlainProducerConnection(EventLoop& loop, UniqueFd descriptor, Owner& owner, std::vector<std::byte>& scratch,
                          PlainProducerHost& host)
      : ZmtpConnection(loop, std::move(descriptor), owner, scratch), host_(host) {}

  [[nodiscard]] bool held() const { return paused(); }
  /// Publishes the kept batch and reads again. Returns false if there is still no space.
  bool resume();
  /// Returns true if the inlet waits for space, the producer has disconnected, and all its input has been
  /// read and published.
  [[nodiscard]] bool spent() const {
    return held() && peer_gone() && pending_ == nullptr && !has_unread_input();
  }

 protected:
  [[nodiscard]] std::optional<ZmtpHandshake> make_handshake() const override {
    ZmtpHandshake handshake("PULL", {"PUSH"});
    handshake.take_bodies_up_to(std::max<std::uint64_t>(host_.message_bytes_max(), zmtp::command_bytes_max));
    return handshake;
  }
  void on_open() override {}
  [[nodiscard]] bool lives_by_output() const override { return false; }
  std::size_t consume(std::span<std::byte> bytes) override;
  void large_frame_received(std::span<std::byte> body, std::size_t bytes) override;
  [[nodiscard]] std::size_t held_bytes() const override {
    const std::size_t bytes = pending_ == nullptr ? 0 : pending_->size_bytes();
    // A batch of small messages is no longer than the leftover of a read, which is not counted either.
    return bytes > 2 * limits::batch_bytes_target ? bytes : 0;
  }

 private:
  /// The next step after one frame.
  enum class Step { next, wait };
  Step take_frame(ByteView bytes, std::size_t& at);
  Step take_message(ByteView bytes, std::size_t& at, const zmtp::FrameHeader& header);
  bool refuse(const zmtp::FrameHeader& header);
  bool add(ByteView payload);
  bool publish_batch();
  void keep_batch();
  void hold();

  PlainProducerHost& host_;
  std::unique_ptr<BatchBuilder> pending_;  // a batch that found no space
  std::uint64_t skip_bytes_ = 0;           // of a refused frame, not received yet
  bool in_refused_parts_ = false;          // between the parts of a refused message
};

}  // namespace lightq::broker
