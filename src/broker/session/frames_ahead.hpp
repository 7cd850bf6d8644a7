/// Frames that have come and are taken next. Layer: session.
#pragma once

#include <cstddef>

#include <lightq/base/types.hpp>

#include "broker/session/channel_book.hpp"

namespace lightq::broker {

/// Of whole frames at the beginning of `bytes`, as many bytes as are to be taken before what they bring is
/// handed out: frames of several channels only a few at a time, so that what their topics need is in the
/// processor's caches still. Has all of that fetched ahead. Looks at lengths and channels only; a header that
/// is none is for whoever takes the frame.
std::size_t fetch_frames_ahead(ByteView bytes, const ChannelBook& channels);

}  // namespace lightq::broker
