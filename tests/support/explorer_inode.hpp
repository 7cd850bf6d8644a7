/// A file of ExplorerStorage: its bytes, and the content of its sectors before each write since the last
/// sync.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "support/explorer_storage.hpp"

namespace lightq::test {

struct ExplorerStorage::Inode {
  /// The content of a sector before a write.
  struct Old {
    std::uint32_t sector;
    std::uint64_t time;
    std::array<std::byte, sector_bytes> bytes;
  };
  /// The history of one sector.
  struct Sector {
    std::int32_t first_old = -1;  ///< the index of its first entry in `olds`, which is its content on disk
    std::uint32_t writes = 0;     ///< the number of its entries in `olds`
    bool stuck = false;           ///< after a failed sync: only writing the sector again can bring it to disk
  };
  struct OldSize {
    std::uint64_t bytes;
    std::uint64_t time;
  };

  std::unique_ptr<std::byte[]> bytes;  ///< `capacity` bytes; zeros from `size` on
  std::size_t capacity = 0;
  std::size_t size = 0;
  std::vector<Old> olds;
  std::vector<Sector> sectors;
  std::vector<OldSize> old_sizes;
  std::vector<std::byte> seen;  ///< while the file is mapped for writing: the bytes at the last comparison
  std::uint64_t content = 0;    ///< files with the same number have the same bytes and size
  int mappings = 0;

  void forget_history() {
    for (const Old& old : olds) sectors[old.sector] = {};
    olds.clear();
    old_sizes.clear();
  }
};

}  // namespace lightq::test
