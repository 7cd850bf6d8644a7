/// Closes the files of a log that is not in use. Layer: log.
#include "log/segment_log/idle_files.hpp"

#include <cstdint>

#include "log/elapsed.hpp"

namespace lightq::log {

namespace {

constexpr std::int64_t idle_before_release_us = 10'000'000;

}  // namespace

void IdleFiles::maintain(Timestamp now) {
  if (encrypted_ != nullptr) encrypted_->let_go();
  if (used_) {
    used_ = false;
    last_use_ = now;
    return;
  }
  if (!has_passed(last_use_, idle_before_release_us, now)) return;
  views_.release();
  if (encrypted_ != nullptr) encrypted_->forget();
  if (!segments_.empty()) segments_.active().release();
}

}  // namespace lightq::log
