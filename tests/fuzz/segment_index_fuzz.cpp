/// Fuzz target: a segment index of any bytes. It is refused, or its entries are in ascending order, are all
/// found, and encode to the same bytes again.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <lightq/base/crc32c.hpp>

#include "log/format/segment_index_file.hpp"

namespace {

using namespace lightq;

void require(bool condition) {
  if (!condition) std::abort();
}

void check(const log::SegmentIndex& index, const log::IndexedSegment& segment) {
  const auto entries = index.entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    require(entries[i].position < segment.end_position && entries[i].offset < segment.end_offset);
    require(segment.first_offset <= entries[i].offset && entries[i].newest <= index.newest());
    require(i == 0 ||
            (entries[i - 1].offset < entries[i].offset && entries[i - 1].position < entries[i].position));
    require(index.find(entries[i].offset) == entries[i]);
    const auto older = index.find(entries[i].newest);
    require(!older || older->newest < entries[i].newest);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 65) return 0;
  const auto* input = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> bytes(input + 1, input + size);
  std::byte* from = bytes.data();
  // The segment matches the file's header. Its end position is limited.
  const log::IndexedSegment segment{load_little_endian<std::uint32_t>(from + 16),
                                    load_little_endian<std::uint64_t>(from + 24),
                                    {load_little_endian<std::uint64_t>(from + 32)},
                                    {load_little_endian<std::uint64_t>(from + 40)},
                                    load_little_endian<std::uint64_t>(from + 48) % (std::uint64_t{1} << 33)};
  if ((data[0] & 1) != 0) {  // mended, so that the code behind the checksum is reached too
    store_little_endian(from, std::uint64_t{0x0A1A0A0D5844494CULL});
    store_little_endian(from + 8, std::uint32_t{1});
    store_little_endian(from + 20, static_cast<std::uint32_t>((bytes.size() - 64) / 24));
    store_little_endian(from + 48, segment.end_position);
    store_little_endian(from + 12, crc32c(ByteView(bytes).subspan(16)));
  }
  const auto decoded = log::SegmentIndexFile::decode(bytes, segment, "index");
  if (!decoded) {
    require(decoded.error().code == ErrorCode::corrupt || decoded.error().code == ErrorCode::foreign_format);
    return 0;
  }
  check(**decoded, segment);
  require(log::SegmentIndexFile::encode(segment, **decoded) == bytes);
  return 0;
}
