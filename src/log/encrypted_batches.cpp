/// Layer: log.
#include "log/encrypted_batches.hpp"

#include <string.h>

#include <algorithm>
#include <utility>

namespace lightq::log {

namespace {

constexpr std::size_t scratch_kept_max = 1 * limits::MiB;

}  // namespace

BatchView EncryptedBatches::encrypt(const BatchView& batch) {
  const std::size_t bytes = batch.total_bytes() + encrypted_layout::more_bytes;
  if (bytes <= scratch_kept_max && scratch_.capacity() > scratch_kept_max) scratch_ = {};
  scratch_.resize(bytes);
  cipher_->encrypt(batch, scratch_);
  return BatchView::trusted(scratch_.data());
}

std::optional<BatchView> EncryptedBatches::decrypt(const BatchView& batch, std::uint64_t key_id) {
  if (!batch.is_encrypted()) return std::nullopt;
  const Offset base = batch.base_offset();
  const auto known =
      std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) { return kept.base == base; });
  if (known != kept_.end()) {
    std::rotate(known, known + 1, kept_.end());
    return BatchView::trusted(kept_.back().bytes.data());
  }
  const std::size_t bytes = batch.total_bytes() - encrypted_layout::more_bytes;
  make_room(bytes);
  std::vector<std::byte> plain(bytes);
  if (!cipher_->decrypt(batch, key_id, plain)) return std::nullopt;
  // It was sound when it was appended; what has gone wrong in memory since then is told all the same.
  const auto fault = BatchView::check(plain);
  if (fault || BatchView::trusted(plain.data()).base_offset() != base) {
    wipe(plain);
    return std::nullopt;
  }
  kept_bytes_ += bytes;
  kept_.push_back({base, std::move(plain)});
  return BatchView::trusted(kept_.back().bytes.data());
}

void EncryptedBatches::make_room(std::size_t bytes) {
  // The one that is read now makes two.
  while (kept_.size() > 1 && (kept_.size() >= limits::decrypted_batches_max ||
                              kept_bytes_ + bytes > limits::decrypted_bytes_max)) {
    kept_bytes_ -= kept_.front().bytes.size();
    wipe(kept_.front().bytes);
    kept_.erase(kept_.begin());
  }
}

void EncryptedBatches::wipe(std::vector<std::byte>& bytes) {
  explicit_bzero(bytes.data(), bytes.size());
}

void EncryptedBatches::forget() {
  for (Kept& kept : kept_) wipe(kept.bytes);
  kept_ = {};
  kept_bytes_ = 0;
  scratch_ = {};
}

}  // namespace lightq::log
