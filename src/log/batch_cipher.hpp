/// What a log encrypts its batches with on the disk, and decrypts them. Layer: log. The log does not know
/// how; docs/log_format.md, "Encrypted batches", does.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <lightq/base/batch.hpp>
#include <lightq/base/result.hpp>

#include "log/segment_format.hpp"

namespace lightq::log {

/// Of one log. One thread.
class BatchCipher {
 public:
  BatchCipher() = default;
  BatchCipher(const BatchCipher&) = delete;
  BatchCipher& operator=(const BatchCipher&) = delete;
  virtual ~BatchCipher() = default;

  /// Of what is encrypted with from now on; never 0.
  [[nodiscard]] virtual std::uint64_t key_id() const = 0;
  /// Batches of a segment with this key id can be decrypted; of an unknown one (key_id_unknown) perhaps.
  [[nodiscard]] virtual bool knows(std::uint64_t key_id) const = 0;
  /// Encrypts a stamped batch into `to`, which is encrypted_layout::more_bytes longer.
  virtual void encrypt(const BatchView& batch, std::span<std::byte> to) = 0;
  /// Decrypts a batch of a segment with this key id into `to`, which is so much shorter: byte for byte what
  /// encrypt was given. False: it is not what has been encrypted in this place of this log; `to` is wiped
  /// then. The batch has passed check_stored_header.
  [[nodiscard]] virtual bool decrypt(const BatchView& batch, std::uint64_t key_id,
                                     std::span<std::byte> to) = 0;
};

/// Makes the ciphers of logs. Any thread.
class BatchCiphers {
 public:
  BatchCiphers() = default;
  BatchCiphers(const BatchCiphers&) = delete;
  BatchCiphers& operator=(const BatchCiphers&) = delete;
  virtual ~BatchCiphers() = default;
  /// Of the log with this incarnation.
  [[nodiscard]] virtual std::unique_ptr<BatchCipher> of(std::uint64_t incarnation) const = 0;
};

/// The key id as people read it: 16 hexadecimal digits.
std::string key_id_text(std::uint64_t key_id);

/// That a segment cannot be read for want of its key.
Error no_key(const std::string& path, std::uint64_t key_id);

}  // namespace lightq::log
