/// Which ways there are to compress a batch's records. docs/log_format.md, "Compressed records". Layer: base.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lightq::inline v1 {

/// How a batch's records are compressed. The values are the format's.
enum class Codec : std::uint8_t {
  none = 0,
  lz4 = 1,
  zstd = 2,
  encrypted = 16,  ///< on disk only, see encrypted_layout: nobody sends or takes such a batch
};

/// A set of codecs, as a hello says it: bit n stands for the codec with the value n; `none` is in each.
class CodecSet {
 public:
  constexpr CodecSet() = default;
  constexpr explicit CodecSet(std::uint32_t bits) : bits_(bits) {}
  /// Those that this library knows.
  static constexpr CodecSet known() {
    return CodecSet(1U << static_cast<unsigned>(Codec::lz4) | 1U << static_cast<unsigned>(Codec::zstd));
  }
  [[nodiscard]] constexpr std::uint32_t bits() const { return bits_; }
  /// `codec` may be any value that was read somewhere.
  [[nodiscard]] constexpr bool has(Codec codec) const {
    const auto value = static_cast<unsigned>(codec);
    return codec == Codec::none || (value < 32 && (bits_ >> value & 1U) != 0);
  }
  friend constexpr bool operator==(CodecSet, CodecSet) = default;

 private:
  std::uint32_t bits_ = 0;
};

/// `none`, `lz4`, `zstd`, `encrypted`.
constexpr std::string_view to_word(Codec codec) {
  switch (codec) {
    case Codec::none: return "none";
    case Codec::lz4: return "lz4";
    case Codec::zstd: return "zstd";
    case Codec::encrypted: return "encrypted";
  }
  return "?";
}

/// The codec of that name, which compresses or does nothing; nothing: there is none.
constexpr std::optional<Codec> codec_of(std::string_view word) {
  for (const Codec codec : {Codec::none, Codec::lz4, Codec::zstd}) {
    if (word == to_word(codec)) return codec;
  }
  return std::nullopt;
}

}  // namespace lightq::inline v1
