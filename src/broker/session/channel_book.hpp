/// A session's channels: their numbers, and which of them are being opened or closed. Layer: session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

#include <lightq/base/limits.hpp>

#include "broker/endpoint/event_loop.hpp"
#include "broker/session/channel.hpp"

namespace lightq::broker {

/// Numbers count from 1 and are never used again. The reactor's thread.
class ChannelBook {
 public:
  /// `loop` outlives it.
  ChannelBook(EventLoop& loop, std::size_t channels_max) : loop_(loop), channels_max_(channels_max) {}

  [[nodiscard]] bool is_full() const { return channels_.size() >= channels_max_; }
  /// For a channel that is to be added, or is refused.
  std::uint32_t take_number() { return next_number_++; }
  /// `request` is to be answered once it may begin.
  void add(std::unique_ptr<Channel> channel, std::uint32_t request);
  /// The request that asked for it, once; then 0.
  std::uint32_t take_opening(std::uint32_t number);
  /// False: it is being closed already.
  bool begin_close(std::uint32_t number, std::uint32_t request) {
    return closing_.emplace(number, request).second;
  }

  [[nodiscard]] Channel* find(std::uint32_t number) const;
  /// Null also while its opening is not answered: nothing may be done with it before.
  [[nodiscard]] Channel* find_open(std::uint32_t number) const;
  /// It is not open, but was, or would have been.
  [[nodiscard]] bool is_over(std::uint32_t number) const {
    return number < next_number_ && !opening_.contains(number);
  }
  [[nodiscard]] bool is_closing(std::uint32_t number) const { return closing_.contains(number); }
  /// Every opening is answered, and every channel is settled.
  [[nodiscard]] bool settled() const;
  template <typename Use>
  void for_each(Use&& use) const {
    for (const auto& [number, channel] : channels_) use(*channel);
  }

  /// A close that was asked for.
  struct Closed {
    std::uint32_t number = 0;
    std::uint32_t request = 0;
  };
  /// One that can be carried out, if there is any: the channel is gone.
  std::optional<Closed> take_closed();

  /// One of them became held, or is not any more.
  void count_held() { ++held_; }
  void count_resumed() { --held_; }
  [[nodiscard]] bool any_held() const { return held_ > 0; }
  [[nodiscard]] std::size_t held_bytes() const {
    std::size_t bytes = 0;
    if (held_ > 0) for_each([&](const Channel& channel) { bytes += channel.held_bytes(); });
    return bytes;
  }

  /// Destroys it later, for this may be its own call; it is told nothing any more.
  void drop(std::uint32_t number);
  void drop_all();

 private:
  EventLoop& loop_;
  const std::size_t channels_max_;
  std::unordered_map<std::uint32_t, std::unique_ptr<Channel>> channels_;
  std::uint32_t next_number_ = 1;
  std::unordered_map<std::uint32_t, std::uint32_t> opening_;  // channel → the request to be answered
  std::unordered_map<std::uint32_t, std::uint32_t> closing_;  // likewise
  std::size_t held_ = 0;
};

}  // namespace lightq::broker
