/// The interface through which a log encrypts its batches before it writes them to disk, and decrypts them
/// after it has read them. Layer: log. The algorithm is outside this layer: docs/log_format.md, "Encrypted
/// batches".
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <lightq/base/batch.hpp>
#include <lightq/base/result.hpp>

#include "log/format/segment_format.hpp"

namespace lightq::log {

/// Encrypts and decrypts the batches of one log. Thread: one at a time.
class BatchCipher {
 public:
  BatchCipher() = default;
  BatchCipher(const BatchCipher&) = delete;
  BatchCipher& operator=(const BatchCipher&) = delete;
  virtual ~BatchCipher() = default;

  /// Returns the id of the key that `encrypt` uses; never 0.
  [[nodiscard]] virtual std::uint64_t key_id() const = 0;
  /// Returns whether this cipher has the key of a segment with this key id. For an unknown id
  /// (key_id_unknown) it returns true if one of its keys may be the right one.
  [[nodiscard]] virtual bool knows(std::uint64_t key_id) const = 0;
  /// Encrypts a stamped batch into `to`. Requires: `to` is longer than the batch by
  /// encrypted_layout::more_bytes.
  virtual void encrypt(const BatchView& batch, std::span<std::byte> to) = 0;
  /// Decrypts a batch of a segment with this key id into `to`: byte for byte the batch that `encrypt`
  /// received. Returns false if these bytes were not encrypted in this log for the batch's offset; `to` is
  /// unspecified then. Requires: the batch has passed check_stored_header; `to` is shorter than it by
  /// encrypted_layout::more_bytes.
  [[nodiscard]] virtual bool decrypt(const BatchView& batch, std::uint64_t key_id,
                                     std::span<std::byte> to) = 0;
};

/// Creates the ciphers of logs. Thread: any.
class BatchCiphers {
 public:
  BatchCiphers() = default;
  BatchCiphers(const BatchCiphers&) = delete;
  BatchCiphers& operator=(const BatchCiphers&) = delete;
  virtual ~BatchCiphers() = default;
  /// Returns a new cipher for the log with this incarnation.
  [[nodiscard]] virtual std::unique_ptr<BatchCipher> of(std::uint64_t incarnation) const = 0;
};

/// Returns the key id as error texts show it: 16 hexadecimal digits.
std::string key_id_text(std::uint64_t key_id);

/// Returns the error (not_supported) for a segment file that needs a key which is not available.
Error no_key(const std::string& path, std::uint64_t key_id);

}  // namespace lightq::log
