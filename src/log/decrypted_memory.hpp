/// What logs keep of the batches that they have decrypted, all of them together within a bound. Layer: log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <lightq/base/limits.hpp>
#include <lightq/base/types.hpp>

namespace lightq::log {

/// A batch in clear. Wipes itself.
class DecryptedBatch {
 public:
  explicit DecryptedBatch(std::size_t bytes) : bytes_(bytes) {}
  DecryptedBatch(const DecryptedBatch&) = delete;
  DecryptedBatch& operator=(const DecryptedBatch&) = delete;
  ~DecryptedBatch();
  [[nodiscard]] std::vector<std::byte>& bytes() { return bytes_; }
  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

/// Those that were not read for longest make room for others, whichever log they are of. Any thread; outlives
/// its parts.
class DecryptedMemory {
 public:
  using Batch = std::shared_ptr<DecryptedBatch>;
  class Part;

  explicit DecryptedMemory(std::size_t bytes_max = limits::decrypted_bytes_total_default)
      : bytes_max_(bytes_max) {}
  DecryptedMemory(const DecryptedMemory&) = delete;
  DecryptedMemory& operator=(const DecryptedMemory&) = delete;

  /// Of what is kept, with what keeping it costs.
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
  Entries entries_;  // by when they were read, the last one at the end
  std::size_t bytes_ = 0;
};

/// One log's. One thread; other parts take from it what they need room for.
class DecryptedMemory::Part {
 public:
  explicit Part(DecryptedMemory& memory) : memory_(memory) {}
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  ~Part() { forget(); }

  /// The batch that begins at `base`; null: it is not kept (any more).
  [[nodiscard]] Batch find(Offset base);
  /// Keeps one that is not there yet, unless it is larger than all may be together.
  void keep(Offset base, const Batch& batch);
  void forget();

 private:
  friend class DecryptedMemory;

  DecryptedMemory& memory_;
  std::unordered_map<std::uint64_t, Entries::iterator> kept_;  // the memory's mutex
};

}  // namespace lightq::log
