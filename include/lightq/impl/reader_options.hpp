/// The definitions of <lightq/reader_options.hpp>. Layer: client.
#pragma once

#include <lightq/reader_options.hpp>

#include <cstddef>

#include <lightq/base/limits.hpp>
#include <lightq/detail/session_patience.hpp>

namespace lightq::inline v1 {

LIGHTQ_INLINE Result<void> ReaderOptions::check() const {
  if (frame_bytes_max < session::frame_bytes_least || frame_bytes_max > session::frame_bytes_greatest)
    return Error{ErrorCode::invalid_argument, "frame_bytes_max must be 64 KiB to 2 GiB"};
  return check_session_patience(*this);
}

}  // namespace lightq::inline v1
