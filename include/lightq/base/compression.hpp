/// Compression of a batch's records in LZ4's block format or as a Zstandard frame (RFC 8878).
/// docs/log_format.md, "Compressed records". Layer: base.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <vector>

#include <lz4.h>
#include <zstd.h>

#include <lightq/base/bytes.hpp>
#include <lightq/base/codec.hpp>
#include <lightq/base/types.hpp>

namespace lightq::inline v1 {

/// Compresses bytes. Keeps its memory between calls. Movable. One thread.
class Compressor {
 public:
  /// Returns the compressed bytes, valid until the next call. Returns nothing if the compressed bytes would
  /// be no shorter than `plain`, or if there is no memory for the compression.
  std::optional<ByteView> compress(Codec codec, ByteView plain) {
    std::size_t bytes = 0;
    switch (codec) {
      case Codec::none:
      case Codec::encrypted: return std::nullopt;
      case Codec::lz4:
        out_.resize(static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(plain.size()))));
        bytes = static_cast<std::size_t>(LZ4_compress_default(
            reinterpret_cast<const char*>(plain.data()), reinterpret_cast<char*>(out_.data()),
            static_cast<int>(plain.size()), static_cast<int>(out_.size())));
        return shorter(bytes, plain);
      case Codec::zstd:
        if (zstd_ == nullptr) zstd_.reset(ZSTD_createCCtx());
        if (zstd_ == nullptr) return std::nullopt;
        out_.resize(ZSTD_compressBound(plain.size()));
        bytes =
            ZSTD_compressCCtx(zstd_.get(), out_.data(), out_.size(), plain.data(), plain.size(), zstd_level);
        return ZSTD_isError(bytes) != 0 ? std::nullopt : shorter(bytes, plain);
    }
    return std::nullopt;
  }

 private:
  static constexpr int zstd_level = 1;  // for typical batches, higher levels gain little and take longer

  [[nodiscard]] std::optional<ByteView> shorter(std::size_t bytes, ByteView plain) const {
    if (bytes == 0 || bytes >= plain.size()) return std::nullopt;
    return ByteView(out_).first(bytes);
  }

  std::vector<std::byte> out_;
  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };
  std::unique_ptr<ZSTD_CCtx, Free> zstd_;
};

/// Decompresses bytes. Movable. One thread.
class Decompressor {
 public:
  /// Fills `plain` with the decompressed bytes. Returns false if `packed` is not exactly plain.size() bytes
  /// in compressed form. Never writes outside `plain`, even if `packed` is malicious. Throws std::bad_alloc
  /// if Zstandard has no memory for its context. Zstandard does not use operator new, so no new-handler was
  /// called before the throw, and memory that a new-handler keeps in reserve was not released.
  bool decompress(Codec codec, ByteView packed, std::span<std::byte> plain) {
    switch (codec) {
      case Codec::none:
      case Codec::encrypted: return false;
      case Codec::lz4:
        return LZ4_decompress_safe(reinterpret_cast<const char*>(packed.data()),
                                   reinterpret_cast<char*>(plain.data()), static_cast<int>(packed.size()),
                                   static_cast<int>(plain.size())) == static_cast<int>(plain.size());
      case Codec::zstd:
        if (!is_one_frame(packed, plain.size())) return false;
        if (zstd_ == nullptr) zstd_.reset(ZSTD_createDCtx());
        if (zstd_ == nullptr) throw std::bad_alloc();
        return ZSTD_decompressDCtx(zstd_.get(), plain.data(), plain.size(), packed.data(), packed.size()) ==
               plain.size();
    }
    return false;
  }

 private:
  /// Returns true if `packed` is exactly one Zstandard frame that states `plain_bytes` as its content size.
  /// The library itself accepts more than the batch format permits: frames of former versions, several
  /// frames, and skippable ones.
  static bool is_one_frame(ByteView packed, std::size_t plain_bytes) {
    constexpr std::uint32_t magic = 0xFD2FB528;
    return packed.size() >= sizeof magic && load_little_endian<std::uint32_t>(packed.data()) == magic &&
           ZSTD_getFrameContentSize(packed.data(), packed.size()) == plain_bytes &&
           ZSTD_findFrameCompressedSize(packed.data(), packed.size()) == packed.size();
  }

  struct Free {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };
  std::unique_ptr<ZSTD_DCtx, Free> zstd_;
};

}  // namespace lightq::inline v1
