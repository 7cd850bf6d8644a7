/// The headers of a tar file, in the form "ustar" of POSIX.1-1988 (IEEE Std 1003.1, "pax"). Layer: cli.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

namespace lightq::cli {

/// A file in a tar file. Its bytes follow its header, and are filled up with zeros to whole blocks.
struct TarEntry {
  static constexpr std::size_t block_bytes = 512;
  static constexpr std::size_t name_bytes_max = 100;
  static constexpr std::uint64_t number_max =
      (std::uint64_t{1} << 33) - 1;  ///< bytes, or seconds: 11 octal digits
  using Block = std::array<std::byte, block_bytes>;

  std::string name;
  std::uint64_t bytes = 0;

  /// Returns the length in the tar file, without the header.
  [[nodiscard]] std::uint64_t padded_bytes() const {
    return (bytes + block_bytes - 1) / block_bytes * block_bytes;
  }
  friend bool operator==(const TarEntry&, const TarEntry&) = default;
};

/// Returns the header of a regular file that only its owner can read. `time_s`: seconds since 1970, when it
/// was written. Errors: too_large if the name or the file is longer than a header can say.
Result<TarEntry::Block> tar_header(const TarEntry& entry, std::uint64_t time_s);

/// Reads a header. Returns nothing for a block of zeros, with which a tar file ends. Errors: corrupt: it is
/// no header of a regular file in this form. So links, directories and extensions are refused. The name may
/// be anything of at most name_bytes_max bytes: the caller checks it.
Result<std::optional<TarEntry>> parse_tar_header(std::span<const std::byte, TarEntry::block_bytes> block);

}  // namespace lightq::cli
