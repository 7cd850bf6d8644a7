/// Memory for blocks that are released in the order in which they were allocated. Layer: client.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <utility>

namespace lightq::inline v1 {

/// Allocates chunks from the system and small blocks from the newest chunk. Keeps one empty chunk for later
/// blocks. One thread.
class FifoMemory {
 public:
  /// Allocates a block, which does not move until it is released. Throws std::bad_alloc.
  std::byte* take(std::size_t bytes) {
    if (chunks_.empty() || chunks_.back().room() < bytes) add_chunk(bytes);
    Chunk& chunk = chunks_.back();
    ++chunk.pieces;
    return chunk.bytes.get() + std::exchange(chunk.used, chunk.used + bytes);
  }

  /// Releases the oldest block.
  void give_back() {
    Chunk& chunk = chunks_.front();
    if (--chunk.pieces > 0) return;
    chunk.used = 0;
    if (chunks_.size() == 1 && chunk.capacity == chunk_bytes) return;
    keep(chunk);
    chunks_.pop_front();
  }

  /// Releases the newest block. Requires: `bytes` is its size.
  void undo(std::size_t bytes) {
    Chunk& chunk = chunks_.back();
    --chunk.pieces;
    chunk.used -= bytes;
    if (chunk.pieces == 0 && chunks_.size() > 1) chunks_.pop_back();
  }

 private:
  static constexpr std::size_t chunk_bytes = 32 * 1024;

  struct Chunk {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t capacity;
    std::size_t used = 0;
    std::size_t pieces = 0;

    [[nodiscard]] std::size_t room() const { return capacity - used; }
  };

  void add_chunk(std::size_t bytes) {
    if (!chunks_.empty() && chunks_.back().pieces == 0) {  // empty, and too small
      keep(chunks_.back());
      chunks_.pop_back();
    }
    if (spare_.bytes != nullptr && bytes <= spare_.capacity) {
      chunks_.push_back(std::move(spare_));  // leaves spare_ without bytes
      return;
    }
    const std::size_t capacity = std::max(bytes, chunk_bytes);
    chunks_.push_back({std::unique_ptr<std::byte[]>(new std::byte[capacity]), capacity});
  }
  void keep(Chunk& chunk) {
    if (chunk.capacity == chunk_bytes) spare_ = std::move(chunk);
  }

  std::deque<Chunk> chunks_;  // only the last chunk may have no blocks
  Chunk spare_{nullptr, 0};
};

}  // namespace lightq::inline v1
