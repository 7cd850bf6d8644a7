/// Encrypts a log's batches on their way to the disk, decrypts them for reading, and caches decrypted ones.
/// Layer: log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <lightq/base/batch.hpp>

#include "log/format/batch_cipher.hpp"
#include "log/segment/decrypted_memory.hpp"

namespace lightq::log {

/// Keeps the batch that was read last. Keeps others in a cache that it shares with other logs, because a
/// batch usually has many readers. Thread: one at a time.
class EncryptedBatches {
 public:
  /// Uses the cache `memory`, or one of its own if that is null. Lifetime: `memory` must outlive this object.
  EncryptedBatches(std::unique_ptr<BatchCipher> cipher, DecryptedMemory* memory)
      : cipher_(std::move(cipher)),
        own_memory_(memory == nullptr ? std::make_unique<DecryptedMemory>() : nullptr),
        kept_(memory == nullptr ? *own_memory_ : *memory) {}
  EncryptedBatches(const EncryptedBatches&) = delete;
  EncryptedBatches& operator=(const EncryptedBatches&) = delete;
  ~EncryptedBatches() = default;

  [[nodiscard]] std::uint64_t key_id() const { return cipher_->key_id(); }
  /// Returns the stamped batch in encrypted form. Lifetime: valid until the next call.
  BatchView encrypt(const BatchView& batch, std::uint32_t mask);
  /// Returns the batch as it was before encryption, or nothing if it is not encrypted, or was not encrypted
  /// in this log for its offset. Lifetime: valid until the next call of decrypt, let_go or forget.
  std::optional<BatchView> decrypt(const BatchView& batch, std::uint64_t key_id);
  /// Releases the batch that decrypt returned last, because no reader uses it any more. Only the cache may
  /// keep it from now on.
  void let_go() { last_.reset(); }
  /// Removes all batches of this log from memory.
  void forget();

 private:
  std::unique_ptr<BatchCipher> cipher_;
  std::vector<std::byte> scratch_;  // output of encrypt
  std::unique_ptr<DecryptedMemory> own_memory_;
  DecryptedMemory::Part kept_;
  DecryptedMemory::Batch last_;  // the batch that decrypt returned last, even if the cache has dropped it
};

}  // namespace lightq::log
