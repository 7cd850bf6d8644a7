/// Encrypts and decrypts the batches of one log, and caches decrypted ones. Layer: log.
#include "log/segment/encrypted_batches.hpp"

#include <utility>

namespace lightq::log {

namespace {

constexpr std::size_t scratch_kept_max = 1 * limits::MiB;

BatchView view_of(const DecryptedMemory::Batch& batch) {
  return BatchView::trusted(batch->bytes().data());
}

}  // namespace

BatchView EncryptedBatches::encrypt(const BatchView& batch, std::uint32_t mask) {
  const std::size_t bytes = batch.total_bytes() + encrypted_layout::more_bytes;
  if (bytes <= scratch_kept_max && scratch_.capacity() > scratch_kept_max) scratch_ = {};
  scratch_.resize(bytes);
  cipher_->encrypt(batch, scratch_);
  stamp_batch_header_crc(scratch_.data(), mask);
  return BatchView::trusted(scratch_.data());
}

std::optional<BatchView> EncryptedBatches::decrypt(const BatchView& batch, std::uint64_t key_id) {
  if (!batch.is_encrypted()) return std::nullopt;
  const Offset base = batch.base_offset();
  if (last_ != nullptr && view_of(last_).base_offset() == base) return view_of(last_);
  last_ = kept_.find(base);
  if (last_ != nullptr) return view_of(last_);
  auto plain = std::make_shared<DecryptedBatch>(batch.total_bytes() - encrypted_layout::more_bytes);
  if (!cipher_->decrypt(batch, key_id, plain->bytes())) return std::nullopt;
  // The batch was sound when it was appended; this check also finds bytes that changed in memory since then.
  const auto fault = BatchView::check(plain->bytes());
  if (fault || view_of(plain).base_offset() != base) return std::nullopt;
  kept_.keep(base, plain);
  last_ = std::move(plain);
  return view_of(last_);
}

void EncryptedBatches::forget() {
  kept_.forget();
  last_.reset();
  scratch_ = {};
}

}  // namespace lightq::log
