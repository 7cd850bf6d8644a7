/// Prefetches memory for received frames. Layer: session.
#pragma once

#include <cstddef>

#include <lightq/base/types.hpp>

#include "session/channel_book.hpp"

namespace lightq::broker {

/// Prefetches the memory that the whole frames at the start of `bytes` need. Returns how many bytes of frames
/// to handle before their messages are dispatched.
/// Covers only frames of a few channels at a time, so that the data of their topics is still in the
/// processor's caches.
/// Reads only lengths and channel numbers. An invalid header is left to the code that handles the frame.
std::size_t fetch_frames_ahead(ByteView bytes, const ChannelBook& channels);

}  // namespace lightq::broker
