/// One producer's connection (its PUSH socket): frames become batches of the topic's log. Layer: endpoint.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include <lightq/base/batch.hpp>

#include "broker/delivery/topic.hpp"
#include "broker/endpoint/connection.hpp"
#include "broker/endpoint/large_frame.hpp"

namespace lightq::broker {

/// What an inlet needs of its topic's host. The reactor's thread.
class InletHost {
 public:
  virtual ~InletHost() = default;
  /// False: read nothing from producers now.
  [[nodiscard]] virtual bool accepting() const = 0;
  virtual PublishOutcome publish(BatchBuilder& batch) = 0;
  /// One input's worth of batches has been published: hand them out.
  virtual void published() = 0;
  virtual void count_refused(std::uint64_t messages) = 0;
  [[nodiscard]] virtual std::uint64_t message_bytes_max() const = 0;
  [[nodiscard]] virtual std::size_t batch_bytes_target() const = 0;
  /// The batch being packed, shared by all inlets of a thread; empty between two inputs.
  virtual BatchBuilder& batch() = 0;
  /// The inlet stopped reading until the host calls resume.
  virtual void inlet_held() = 0;
};

/// Bounded in bytes whatever a producer sends: while the log is full at most one input's worth is kept here,
/// the rest waits in the producer's own socket.
class Inlet final : public Connection {
 public:
  Inlet(EventLoop& loop, UniqueFd descriptor, Owner& owner, std::vector<std::byte>& scratch, InletHost& host)
      : Connection(loop, std::move(descriptor), owner, scratch), host_(host) {}

  [[nodiscard]] bool held() const { return paused(); }
  /// There may be room again. False if there is none still.
  bool resume();
  /// Held, the producer has gone, and nothing it sent is left to be read.
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
  std::span<std::byte> large_frame_space() override { return large_.space(); }
  void large_frame_received(std::size_t bytes) override;
  [[nodiscard]] std::size_t held_bytes() const override {
    const std::size_t bytes = pending_ == nullptr ? 0 : pending_->size_bytes();
    return bytes > 2 * limits::batch_bytes_target ? bytes
                                                  : 0;  // of small messages: as what a read leaves over
  }
  [[nodiscard]] std::size_t large_frame_memory() const override { return large_.memory_bytes(); }
  void release_large_frame() override { large_.release_memory(); }

 private:
  /// What to do after looking at one frame.
  enum class Step { next, wait };
  Step take_frame(ByteView bytes, std::size_t& at);
  Step take_message(ByteView bytes, std::size_t& at, const zmtp::FrameHeader& header);
  bool refuse(const zmtp::FrameHeader& header);
  bool add(ByteView payload);
  bool publish_batch();
  void keep_batch();
  void hold();

  InletHost& host_;
  std::unique_ptr<BatchBuilder> pending_;  // a batch that found no room
  std::uint64_t skip_bytes_ = 0;           // of a refused frame, still to come
  bool in_refused_parts_ = false;          // between the parts of a refused message
  LargeFrame large_;                       // the body of a message
};

}  // namespace lightq::broker
