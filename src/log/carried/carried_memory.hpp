/// Carried records in memory, for topics that end with the broker. Layer: log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "log/carried/carried_records.hpp"

namespace lightq::log {

/// Keeps copies in memory, up to a limit in bytes. Never answers `damaged` or `unavailable`.
class CarriedMemory final : public CarriedRecords {
 public:
  /// The bookkeeping of each copy in bytes, roughly.
  static constexpr std::uint64_t bytes_each = 128;

  /// `bytes_max`: the most bytes(), which count bytes_each for each copy.
  explicit CarriedMemory(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  [[nodiscard]] const OffsetSet& offsets() const override { return offsets_; }
  [[nodiscard]] std::uint64_t bytes() const override { return bytes_; }
  bool add(ByteView record) override;
  void remove(OffsetRange range) override;
  [[nodiscard]] const Error& last_error() const override { return last_error_; }

 private:
  ReadResult read(Offset offset) override;

  const std::uint64_t bytes_max_;
  std::map<std::uint64_t, std::vector<std::byte>> records_;
  OffsetSet offsets_;
  std::uint64_t bytes_ = 0;
  Error last_error_;
};

}  // namespace lightq::log
