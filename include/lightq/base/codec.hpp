/// The codecs that can compress a batch's records. docs/log_format.md, "Compressed records". Layer: base.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lightq::inline v1 {

/// How a batch's records are compressed. The values are those of the format.
enum class Codec : std::uint8_t {
  none = 0,
  lz4 = 1,
  zstd = 2,
  encrypted = 16,  ///< on disk only, see encrypted_layout: such a batch is never sent or accepted
};

/// A set of codecs, as in a session's hello: bit n stands for the codec with the value n. Each set contains
/// `none`.
class CodecSet {
 public:
  constexpr CodecSet() = default;
  constexpr explicit CodecSet(std::uint32_t bits) : bits_(bits) {}
  /// Returns the codecs that this library knows.
  static constexpr CodecSet known() {
    return CodecSet(1U << static_cast<unsigned>(Codec::lz4) | 1U << static_cast<unsigned>(Codec::zstd));
  }
  [[nodiscard]] constexpr std::uint32_t bits() const { return bits_; }
  /// Returns true if the set contains `codec`, which may be any value from a file or peer.
  [[nodiscard]] constexpr bool has(Codec codec) const {
    const auto value = static_cast<unsigned>(codec);
    return codec == Codec::none || (value < 32 && (bits_ >> value & 1U) != 0);
  }
  friend constexpr bool operator==(CodecSet, CodecSet) = default;

 private:
  std::uint32_t bits_ = 0;
};

/// Returns `none`, `lz4`, `zstd` or `encrypted`.
constexpr std::string_view to_word(Codec codec) {
  switch (codec) {
    case Codec::none: return "none";
    case Codec::lz4: return "lz4";
    case Codec::zstd: return "zstd";
    case Codec::encrypted: return "encrypted";
  }
  return "?";
}

/// Returns the codec `none`, `lz4` or `zstd` of that name, or nothing for any other word.
constexpr std::optional<Codec> codec_of(std::string_view word) {
  for (const Codec codec : {Codec::none, Codec::lz4, Codec::zstd}) {
    if (word == to_word(codec)) return codec;
  }
  return std::nullopt;
}

}  // namespace lightq::inline v1
