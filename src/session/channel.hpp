/// The base class of a session's channels. Layer: session.
#pragma once

#include <cstdint>

namespace lightq::broker {

/// A producer or a consumer of one topic. ChannelBook owns it. Thread: the reactor's.
class Channel {
 public:
  enum class Kind { produces, consumes };

  Channel(Kind kind, std::uint32_t number) : kind_(kind), number_(number) {}
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  virtual ~Channel() = default;

  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] std::uint32_t number() const { return number_; }
  /// Returns true if it waits with a batch for space in the topic. The session must not be read meanwhile.
  [[nodiscard]] virtual bool held() const = 0;
  /// Returns the bytes of the batch that waits for space.
  [[nodiscard]] virtual std::size_t held_bytes() const { return 0; }
  /// Returns true if every frame received on it has the reply that it needs.
  [[nodiscard]] virtual bool settled() const = 0;
  /// Leaves the topic. Afterwards the topic calls it no more, and only destruction is allowed.
  virtual void leave() = 0;
  /// Prefetches memory for the next frame on this channel. `step` is a step of fetch_ahead; the caller has
  /// prefetched this object.
  virtual void fetch_ahead_for_input(unsigned step) const = 0;

 private:
  const Kind kind_;
  const std::uint32_t number_;
};

}  // namespace lightq::broker
