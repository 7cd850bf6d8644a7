/// Builds an offset set from ascending runs. Layer: log.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <lightq/base/types.hpp>

#include "log/offsets/offset_set.hpp"

namespace lightq::log {

/// Takes ascending runs, and returns them as a set of full leaves. Faster than OffsetSet::add. A plain value
/// for one thread.
class OffsetSetBuilder {
 public:
  OffsetSetBuilder() = default;
  OffsetSetBuilder(const OffsetSetBuilder&) = delete;
  OffsetSetBuilder& operator=(const OffsetSetBuilder&) = delete;
  ~OffsetSetBuilder();

  /// Appends a run. A run that begins where the last one ends extends it. An empty run changes nothing.
  /// Requires: `run` begins at the end of the last run or later.
  void append(OffsetRange run);
  /// Returns the set of all appended runs. Afterwards the builder is empty.
  OffsetSet finish();

 private:
  void encode(OffsetRange run);
  void close_leaf();

  OffsetRange pending_;  // the last run, which may still grow; empty: there is none
  std::array<std::byte, offset_leaf_bytes_max> leaf_{};
  std::size_t leaf_bytes_ = 0;
  OffsetTree open_;  // of leaf_
  Offset end_;       // of the last run in leaf_
  std::vector<OffsetTree> leaves_;
  std::size_t bytes_ = 0;  // heap memory of leaves_
};

}  // namespace lightq::log
