/// A cache of decrypted batches that all logs share, so that their total size has one limit. Layer: log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <lightq/base/limits.hpp>
#include <lightq/base/types.hpp>

namespace lightq::log {

/// A decrypted batch.
class DecryptedBatch {
 public:
  explicit DecryptedBatch(std::size_t bytes) : bytes_(bytes) {}
  DecryptedBatch(const DecryptedBatch&) = delete;
  DecryptedBatch& operator=(const DecryptedBatch&) = delete;
  [[nodiscard]] std::vector<std::byte>& bytes() { return bytes_; }
  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

/// The cache. When it is full, it removes the least recently read batches, of any log. Thread: any. Lifetime:
/// it must outlive its parts.
class DecryptedMemory {
 public:
  using Batch = std::shared_ptr<DecryptedBatch>;
  class Part;

  explicit DecryptedMemory(std::size_t bytes_max = limits::decrypted_bytes_total_default)
      : bytes_max_(bytes_max) {}
  DecryptedMemory(const DecryptedMemory&) = delete;
  DecryptedMemory& operator=(const DecryptedMemory&) = delete;

  /// Returns the size of all cached batches, including about 256 bytes of overhead for each.
  [[nodiscard]] std::size_t bytes() const;

 private:
  struct Entry {
    Part* part;
    Offset base;
    Batch batch;
  };
  using Entries = std::list<Entry>;
  static std::size_t cost_of(const DecryptedBatch& batch);
  void drop(Entries::iterator entry);

  const std::size_t bytes_max_;
  mutable std::mutex mutex_;
  Entries entries_;  // in the order of their last read, the newest at the end
  std::size_t bytes_ = 0;
};

/// The batches of one log in the cache. Thread: one at a time; other parts may remove its batches when they
/// need space.
class DecryptedMemory::Part {
 public:
  explicit Part(DecryptedMemory& memory) : memory_(memory) {}
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  ~Part() { forget(); }

  /// Returns the batch that begins at `base`, or null if it is not in the cache (any more).
  [[nodiscard]] Batch find(Offset base);
  /// Adds a batch, unless it is larger than the whole cache may be. Requires: the batch is not in the cache.
  void keep(Offset base, const Batch& batch);
  void forget();

 private:
  friend class DecryptedMemory;

  DecryptedMemory& memory_;
  std::unordered_map<std::uint64_t, Entries::iterator> kept_;  // guarded by the memory's mutex
};

}  // namespace lightq::log
