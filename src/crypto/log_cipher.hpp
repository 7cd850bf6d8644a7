/// Encrypts the batches of one log with XChaCha20-Poly1305. Layer: crypto. docs/log_format.md, "Encrypted
/// batches", specifies every byte.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "log/format/batch_cipher.hpp"

namespace lightq::rest {

inline constexpr std::size_t key_bytes = 32;

/// A key of 32 bytes that is wiped from memory when destroyed. Copyable.
class Key {
 public:
  Key() = default;
  Key(const Key&) = default;
  Key& operator=(const Key&) = default;
  ~Key();
  [[nodiscard]] std::byte* data() { return bytes_.data(); }
  [[nodiscard]] const std::byte* data() const { return bytes_.data(); }

 private:
  std::array<std::byte, key_bytes> bytes_{};
};

/// The cipher of one log. Encrypts with the first of its keys, and decrypts with each of them.
class LogCipher final : public log::BatchCipher {
 public:
  /// Derives the keys of the log with this incarnation from the storage keys `masters`. Requires: at least
  /// one.
  LogCipher(std::span<const Key> masters, std::uint64_t incarnation);

  [[nodiscard]] std::uint64_t key_id() const override { return keys_.front().id; }
  [[nodiscard]] bool knows(std::uint64_t key_id) const override;
  void encrypt(const BatchView& batch, std::span<std::byte> to) override;
  [[nodiscard]] bool decrypt(const BatchView& batch, std::uint64_t key_id, std::span<std::byte> to) override;

 private:
  struct LogKey {
    Key key;
    std::uint64_t id = 0;
  };
  static bool decrypt_with(const Key& key, const BatchView& batch, std::span<std::byte> to);

  std::vector<LogKey> keys_;
};

}  // namespace lightq::rest
