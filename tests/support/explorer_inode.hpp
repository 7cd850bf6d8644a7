/// A file of ExplorerStorage: its bytes, and what its sectors held before each write since the last sync.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "support/explorer_storage.hpp"

namespace lightq::test {

struct ExplorerStorage::Inode {
  /// What a sector held before a write.
  struct Old {
    std::uint32_t sector;
    std::uint64_t time;
    std::array<std::byte, sector_bytes> bytes;
  };
  /// What is known of one sector.
  struct Sector {
    std::int32_t first_old = -1;  ///< its first in `olds`: what is on disk
    std::uint32_t writes = 0;     ///< how many it has there
    bool stuck = false;           ///< a failed sync gave it up; only writing it again helps
  };
  struct OldSize {
    std::uint64_t bytes;
    std::uint64_t time;
  };

  std::unique_ptr<std::byte[]> bytes;  ///< of `capacity`; zeros from `size` on
  std::size_t capacity = 0;
  std::size_t size = 0;
  std::vector<Old> olds;
  std::vector<Sector> sectors;
  std::vector<OldSize> old_sizes;
  std::vector<std::byte> seen;  ///< mapped for writing: what was there at the last look
  std::uint64_t content = 0;    ///< the same number, the same bytes and size
  int mappings = 0;

  void forget_history() {
    for (const Old& old : olds) sectors[old.sector] = {};
    olds.clear();
    old_sizes.clear();
  }
};

}  // namespace lightq::test
