/// A session's channels: their numbers, and which of them are being opened or closed. Layer: session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

#include <lightq/base/limits.hpp>

#include "net/event_loop.hpp"
#include "session/channel.hpp"

namespace lightq::broker {

/// Owns the channels of one session. Numbers count from 1 and are never used again.
/// A channel is *opening* until the broker answers the client's request for it. It is *closing* from the
/// client's close request until it is settled.
/// The session and its produce and consume sides call it. Thread: the reactor's.
class ChannelBook {
 public:
  /// Lifetime: `loop` outlives it.
  ChannelBook(EventLoop& loop, std::size_t channels_max) : loop_(loop), channels_max_(channels_max) {}

  [[nodiscard]] bool is_full() const { return channels_.size() >= channels_max_; }
  /// Returns the next number, for a channel that is added or refused.
  std::uint32_t take_number() { return next_number_++; }
  /// Adds a channel that is opening. `request` is answered once the channel may begin.
  void add(std::unique_ptr<Channel> channel, std::uint32_t request);
  /// Ends the opening, and returns the request to answer. Returns 0 if the channel is not opening.
  std::uint32_t take_opening(std::uint32_t number);
  /// Begins to close the channel. Returns false if it is closing already.
  bool begin_close(std::uint32_t number, std::uint32_t request) {
    return closing_.emplace(number, request).second;
  }

  [[nodiscard]] Channel* find(std::uint32_t number) const;
  /// Returns the channel, or null if there is none or it is opening. No frame may be handled before the
  /// opening is answered.
  [[nodiscard]] Channel* find_open(std::uint32_t number) const;
  /// Returns true if the number is used up and its channel is not opening.
  [[nodiscard]] bool is_over(std::uint32_t number) const {
    return number < next_number_ && !opening_.contains(number);
  }
  [[nodiscard]] bool is_closing(std::uint32_t number) const { return closing_.contains(number); }
  /// Returns true if no channel is opening and every channel is settled.
  [[nodiscard]] bool settled() const;
  template <typename Use>
  void for_each(Use&& use) const {
    for (const auto& [number, channel] : channels_) use(*channel);
  }

  /// A close request and its channel.
  struct Closed {
    std::uint32_t number = 0;
    std::uint32_t request = 0;
  };
  /// Returns a close request that can be answered now, after removing its channel. Returns nothing if there
  /// is none.
  std::optional<Closed> take_closed();

  /// Counts a channel that begins or ends to wait for space (Channel::held).
  void count_held() { ++held_; }
  void count_resumed() { --held_; }
  [[nodiscard]] bool any_held() const { return held_ > 0; }
  [[nodiscard]] std::size_t held_bytes() const {
    std::size_t bytes = 0;
    if (held_ > 0) for_each([&](const Channel& channel) { bytes += channel.held_bytes(); });
    return bytes;
  }

  /// Removes the channel and destroys it later, because the caller may be one of its own functions. The topic
  /// calls it no more.
  void drop(std::uint32_t number);
  void drop_all();

 private:
  EventLoop& loop_;
  const std::size_t channels_max_;
  std::unordered_map<std::uint32_t, std::unique_ptr<Channel>> channels_;
  std::uint32_t next_number_ = 1;
  std::unordered_map<std::uint32_t, std::uint32_t> opening_;  // channel → the request to answer
  std::unordered_map<std::uint32_t, std::uint32_t> closing_;  // channel → the request to answer
  std::size_t held_ = 0;
};

}  // namespace lightq::broker
