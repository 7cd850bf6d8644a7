/// Finds the channels of received frames, and prefetches their topics. Layer: session.
#include "session/frames_ahead.hpp"

#include <array>
#include <cstdint>

#include <lightq/base/fetch_ahead.hpp>
#include <lightq/protocol/session_frame.hpp>

namespace lightq::broker {

namespace {

constexpr std::size_t channels_at_once = 16;
constexpr std::size_t channel_bytes = 256;  // of a channel of either kind, used while a frame is handled

}  // namespace

std::size_t fetch_frames_ahead(ByteView bytes, const ChannelBook& channels) {
  namespace layout = session::frame_layout;
  std::array<const Channel*, channels_at_once> found{};
  std::size_t count = 0;
  std::size_t at = 0;
  std::uint32_t last = 0;
  while (count < found.size() && bytes.size() - at >= layout::header_bytes) {
    const std::byte* const header = bytes.data() + at;
    const auto number = load_little_endian<std::uint32_t>(header + layout::channel);
    if (number != last) {
      last = number;
      found[count] = channels.find(number);
      if (found[count] != nullptr) fetch_ahead(found[count++], channel_bytes);
    }
    const std::size_t whole =
        layout::header_bytes + load_little_endian<std::uint32_t>(header + layout::body_bytes);
    if (bytes.size() - at < whole) break;
    at += whole;
  }
  if (count < 2) return at;
  for (unsigned step = 0; step < fetch_ahead_steps; ++step) {
    for (std::size_t i = 0; i < count; ++i) found[i]->fetch_ahead_for_input(step);
  }
  return at;
}

}  // namespace lightq::broker
