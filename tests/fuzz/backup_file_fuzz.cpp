/// Fuzz target: backups in one file, which `lightq restore` reads. No bytes may crash it, or make it read
/// outside the file. A backup that is read to its end has only files that its manifest lists, with paths
/// below the backup.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>

#include "client/backup/backup_source.hpp"
#include "client/backup/tar_entry.hpp"

namespace {

using namespace lightq;

void must(bool holds) {
  if (!holds) std::abort();
}

/// A file in memory, for reading.
class BytesFile final : public log::File {
 public:
  explicit BytesFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  Result<std::size_t> read_some(std::span<std::byte> to, std::uint64_t position) override {
    if (position >= bytes_.size()) return std::size_t{0};
    const auto part = bytes_.subspan(position, std::min<std::size_t>(to.size(), bytes_.size() - position));
    std::ranges::copy(part, to.begin());
    return part.size();
  }
  Result<std::uint64_t> size_bytes() override { return std::uint64_t{bytes_.size()}; }
  Result<std::size_t> write_some(ByteView, std::uint64_t) override { std::abort(); }
  Result<void> allocate(std::uint64_t) override { std::abort(); }
  Result<void> sync() override { std::abort(); }
  Result<std::unique_ptr<log::Mapping>> map(std::size_t) override { std::abort(); }
  Result<std::unique_ptr<log::WritableMapping>> map_writable(std::size_t) override { std::abort(); }

 private:
  const std::span<const std::byte> bytes_;
};

void read_all_of(std::span<const std::byte> bytes) {
  const auto source = cli::backup_in_file("backup.tar", std::make_unique<BytesFile>(bytes));
  const auto text = source->manifest();
  if (!text) return must(!text.error().message.empty());
  const auto manifest = cli::parse_manifest(*text);
  if (!manifest) return;
  for (const cli::BackupFile& file : manifest->files) {
    must(file.path[0] != '/' && file.path.find("..") != 0 && file.path.find("/..") == std::string::npos);
    const auto read = source->read(file, nullptr);
    if (!read) return must(!read.error().message.empty());
    must(read->bytes == file.bytes && read->bytes <= bytes.size());
  }
  if (const auto ended = source->end(); !ended) must(!ended.error().message.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  read_all_of(bytes);
  if (size < cli::TarEntry::block_bytes) return 0;
  const auto entry = cli::parse_tar_header(bytes.first<cli::TarEntry::block_bytes>());
  if (entry && *entry) {
    const auto again = cli::tar_header(**entry, 0);
    must(again.ok() && cli::parse_tar_header(*again).value_or_throw() == *entry);
  }
  return 0;
}
