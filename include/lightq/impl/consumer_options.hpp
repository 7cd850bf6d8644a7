/// The definitions of <lightq/consumer_options.hpp>. Layer: client.
#pragma once

#include <lightq/consumer_options.hpp>

#include <chrono>
#include <cstddef>

#include <lightq/base/limits.hpp>
#include <lightq/detail/session_patience.hpp>

namespace lightq::inline v1 {

LIGHTQ_INLINE Result<void> ConsumerOptions::check() const {
  const auto bad = [](const char* sentence) { return Error{ErrorCode::invalid_argument, sentence}; };
  if (mode != ConsumeMode::group && mode != ConsumeMode::own) return bad("mode must be group or own");
  if (!group.empty() && !TopicName::parse(group))
    return Error{ErrorCode::invalid_argument, "'" + group + "' is not a group name"};
  if (from.value != 0 && from.from != session::From::offset && from.from != session::From::time)
    return bad("from: a value is permitted only with an offset or a time");
  if (prefetch_messages && (*prefetch_messages < 1 || *prefetch_messages > 1'000'000'000))
    return bad("prefetch_messages must be 1 to 1,000,000,000");
  if (prefetch_bytes < 1 || prefetch_bytes > 1024 * limits::GiB)
    return bad("prefetch_bytes must be 1 to 1 TiB");
  if (prefetch_time < Timeout(1) || prefetch_time > std::chrono::hours(1))
    return bad("prefetch_time must be 1 ms to an hour");
  if (ack_timeout.count() < 0 || ack_timeout.count() > UINT32_MAX)
    return bad("ack_timeout must be 0 to 49 days");
  if (frame_bytes_max < session::frame_bytes_least || frame_bytes_max > session::frame_bytes_greatest)
    return bad("frame_bytes_max must be 64 KiB to 2 GiB");
  return check_session_patience(*this);
}

}  // namespace lightq::inline v1
