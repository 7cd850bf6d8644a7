/// A guard that changes the distances between checkpoints while a test runs.
#pragma once

#include <cstdint>

#include "log/format/segment_format.hpp"

namespace lightq::test {

/// Sets how far a writer may write past its newest checkpoint, and after how many bytes the next one is due.
/// The destructor restores the usual distances. The distances are global, so only one guard may exist at a
/// time. Thread: one.
class CheckpointDistances {
 public:
  CheckpointDistances() = default;
  CheckpointDistances(std::uint64_t reserve_bytes, std::uint64_t interval_bytes) {
    set(reserve_bytes, interval_bytes);
  }
  CheckpointDistances(const CheckpointDistances&) = delete;
  CheckpointDistances& operator=(const CheckpointDistances&) = delete;
  CheckpointDistances(CheckpointDistances&&) = delete;
  CheckpointDistances& operator=(CheckpointDistances&&) = delete;
  ~CheckpointDistances() { set_usual(); }

  void set(std::uint64_t reserve_bytes, std::uint64_t interval_bytes) {
    log::checkpoint_reserve_bytes = reserve_bytes;
    log::checkpoint_interval_bytes = interval_bytes;
  }
  void set_usual() { set(usual_reserve_, usual_interval_); }

 private:
  std::uint64_t usual_reserve_ = log::checkpoint_reserve_bytes;
  std::uint64_t usual_interval_ = log::checkpoint_interval_bytes;
};

}  // namespace lightq::test
