/// A log's encrypted batches: made on their way to the disk, and decrypted as they are read; a few are kept.
/// Layer: log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <lightq/base/batch.hpp>

#include "log/batch_cipher.hpp"

namespace lightq::log {

/// Keeps the last batches that were read, at most limits::decrypted_batches_max of them and
/// limits::decrypted_bytes_max, but two in any case: readers stand at a few places. What is given up is
/// wiped. One thread.
class EncryptedBatches {
 public:
  explicit EncryptedBatches(std::unique_ptr<BatchCipher> cipher) : cipher_(std::move(cipher)) {}
  EncryptedBatches(const EncryptedBatches&) = delete;
  EncryptedBatches& operator=(const EncryptedBatches&) = delete;
  ~EncryptedBatches() { forget(); }

  [[nodiscard]] std::uint64_t key_id() const { return cipher_->key_id(); }
  /// The stamped batch encrypted; valid until the next call.
  BatchView encrypt(const BatchView& batch);
  /// The batch as it was before it was encrypted; valid until the next call of encrypt, decrypt or forget.
  /// Nothing: it is not what was encrypted here, or never was encrypted.
  std::optional<BatchView> decrypt(const BatchView& batch, std::uint64_t key_id);
  /// Gives up what is kept.
  void forget();

 private:
  struct Kept {
    Offset base;
    std::vector<std::byte> bytes;
  };
  static void wipe(std::vector<std::byte>& bytes);
  void make_room(std::size_t bytes);

  std::unique_ptr<BatchCipher> cipher_;
  std::vector<std::byte> scratch_;  // of encrypt
  std::vector<Kept> kept_;          // by when they were read, the last one at the end
  std::size_t kept_bytes_ = 0;
};

}  // namespace lightq::log
