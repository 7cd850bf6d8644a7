/// Memory for pieces that are given back in the order in which they were taken. Layer: client.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <utility>

namespace lightq::inline v1 {

/// Takes memory from the system in chunks, and uses one that is empty again for what comes next. One thread.
class FifoMemory {
 public:
  /// A piece of memory that stays where it is until it is given back. Throws std::bad_alloc.
  std::byte* take(std::size_t bytes) {
    if (chunks_.empty() || chunks_.back().room() < bytes) add_chunk(bytes);
    Chunk& chunk = chunks_.back();
    ++chunk.pieces;
    return chunk.bytes.get() + std::exchange(chunk.used, chunk.used + bytes);
  }

  /// Gives back the oldest piece.
  void give_back() {
    Chunk& chunk = chunks_.front();
    if (--chunk.pieces > 0) return;
    chunk.used = 0;
    if (chunks_.size() == 1 && chunk.capacity == chunk_bytes) return;
    keep(chunk);
    chunks_.pop_front();
  }

  /// Gives back the newest piece, of so many bytes.
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
    if (!chunks_.empty() && chunks_.back().pieces == 0) {  // too small
      keep(chunks_.back());
      chunks_.pop_back();
    }
    if (spare_.bytes != nullptr && bytes <= spare_.capacity) {
      chunks_.push_back(std::move(spare_));  // which leaves it without bytes
      return;
    }
    const std::size_t capacity = std::max(bytes, chunk_bytes);
    chunks_.push_back({std::unique_ptr<std::byte[]>(new std::byte[capacity]), capacity});
  }
  void keep(Chunk& chunk) {
    if (chunk.capacity == chunk_bytes) spare_ = std::move(chunk);
  }

  std::deque<Chunk> chunks_;  // only the last one may be without pieces
  Chunk spare_{nullptr, 0};
};

}  // namespace lightq::inline v1
