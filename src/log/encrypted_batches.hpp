/// A log's encrypted batches: made on their way to the disk, and decrypted as they are read; some are kept.
/// Layer: log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <lightq/base/batch.hpp>

#include "log/batch_cipher.hpp"
#include "log/decrypted_memory.hpp"

namespace lightq::log {

/// Keeps the batch that was read last, and others as long as the memory that it shares with other logs has
/// room: many readers come to each. What is given up is wiped. One thread.
class EncryptedBatches {
 public:
  /// `memory` outlives it; null: one of its own.
  EncryptedBatches(std::unique_ptr<BatchCipher> cipher, DecryptedMemory* memory)
      : cipher_(std::move(cipher)),
        own_memory_(memory == nullptr ? std::make_unique<DecryptedMemory>() : nullptr),
        kept_(memory == nullptr ? *own_memory_ : *memory) {}
  EncryptedBatches(const EncryptedBatches&) = delete;
  EncryptedBatches& operator=(const EncryptedBatches&) = delete;
  ~EncryptedBatches() = default;

  [[nodiscard]] std::uint64_t key_id() const { return cipher_->key_id(); }
  /// The stamped batch encrypted; valid until the next call.
  BatchView encrypt(const BatchView& batch, std::uint32_t mask);
  /// The batch as it was before it was encrypted; valid until the next call of decrypt, let_go or forget.
  /// Nothing: it is not what was encrypted here, or never was encrypted.
  std::optional<BatchView> decrypt(const BatchView& batch, std::uint64_t key_id);
  /// Nobody reads in the last one any more: it stays only as others do.
  void let_go() { last_.reset(); }
  /// Gives up what is kept.
  void forget();

 private:
  std::unique_ptr<BatchCipher> cipher_;
  std::vector<std::byte> scratch_;  // of encrypt
  std::unique_ptr<DecryptedMemory> own_memory_;
  DecryptedMemory::Part kept_;
  DecryptedMemory::Batch last_;  // what was given out, wherever else it is kept
};

}  // namespace lightq::log
