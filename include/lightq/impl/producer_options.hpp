/// The definitions of <lightq/producer_options.hpp>. Layer: client.
#pragma once

#include <lightq/producer_options.hpp>

#include <cstddef>

#include <lightq/base/limits.hpp>
#include <lightq/detail/session_patience.hpp>

namespace lightq::inline v1 {

LIGHTQ_INLINE Result<void> ProducerOptions::check() const {
  constexpr std::size_t batch_bytes_least = 4 * limits::KiB;
  constexpr std::size_t batch_bytes_greatest = 256 * limits::MiB;
  const auto bad = [](const char* sentence) { return Error{ErrorCode::invalid_argument, sentence}; };
  if (batch_bytes < batch_bytes_least || batch_bytes > batch_bytes_greatest)
    return bad("batch_bytes must be 4 KiB to 256 MiB");
  if (memory_bytes_max < batch_bytes) return bad("memory_bytes_max must be at least batch_bytes");
  if (linger.count() < 0 || send_timeout.count() < 0)
    return bad("linger and send_timeout must not be negative");
  return check_session_patience(*this);
}

}  // namespace lightq::inline v1
