/// Fuzz target: producer files of any bytes. They are refused, or decode to a snapshot that encodes to the
/// same one again. Even if they contradict a log, each producer continues after its last message in that log.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <lightq/base/crc32c.hpp>

#include "delivery/producers/durable_producers.hpp"
#include "log/memory/ring_log.hpp"
#include "support/batches.hpp"
#include "support/faulty_storage.hpp"

namespace {

using namespace lightq;
using broker::ProducerFile;

const std::string directory = "/topics/1";

void require(bool condition) {
  if (!condition) std::abort();
}

/// Corrects the header, so that the code behind the checksum is reached too. Leaves the sequence, and the
/// number of entries unless it is 0.
void mend(std::vector<std::byte>& file, std::uint32_t version) {
  if (file.size() < 40) return;
  const std::size_t entry_bytes = version == 1 ? 26 : 52;
  store_little_endian(file.data(), std::uint64_t{0x0A1A0A0D4452504C});
  store_little_endian(file.data() + 8, version);
  store_little_endian(file.data() + 24, static_cast<std::uint32_t>(file.size()));
  if (file[28] == std::byte{0})
    store_little_endian(file.data() + 28, static_cast<std::uint32_t>((file.size() - 40) / entry_bytes));
  const std::uint32_t of_version = version == 1 ? 0 : crc32c(ByteView(file).subspan(8, 4));
  store_little_endian(file.data() + 12, crc32c(ByteView(file).subspan(16), of_version));
}

/// Writes a producer file. `mended` is the version to which its header is corrected; 0 leaves it unchanged.
void put(test::FaultyStorage& storage, const std::string& name, ByteView bytes, std::uint32_t mended) {
  const std::string path = directory + "/producers." + name;
  require(storage.open(path, log::OpenMode::create).ok());
  auto& file = storage.bytes_of(path);
  file.assign(bytes.begin(), bytes.end());
  if (mended != 0) mend(file, mended);
}

/// Appends batches of producers 1 to 3 in turn, five of each, with two messages in a batch. Returns each
/// producer's next sequence.
std::map<std::uint64_t, std::uint64_t> fill(log::Log& log) {
  std::map<std::uint64_t, std::uint64_t> ends;
  for (int i = 0; i < 15; ++i) {
    const std::uint64_t id = 1 + static_cast<std::uint64_t>(i) % 3;
    auto batch = test::make_batch_of_producer(id, 1, ends[id], {"a", "b"});
    require(log.append(batch, {1000 + i}).outcome == log::AppendOutcome::appended);
    ends[id] += 2;
  }
  return ends;
}

void recover(const broker::ProducerSnapshot& snapshot) {
  log::RingLog log({.capacity_bytes = limits::ring_bytes_min});
  const auto ends = fill(log);
  broker::DurableProducers producers(broker::DurableProducers::Kept::on_disk,
                                     broker::ProducerTable(broker::producer_file_entries_max, 1'000'000));
  const auto recovered = producers.recover(snapshot, log);
  require(recovered.ok());
  const auto& recovery = *recovered;
  require(producers.table().size() <= broker::producer_file_entries_max);
  require(recovery.remove_file == (log.next_offset() < snapshot.as_of));
  require(!recovery.remove_file || (recovery.doubt && producers.table().size() == 0));
  // A producer with messages that recovery read continues after the last of them.
  for (const auto& [id, end] : ends) {
    const auto* const known = producers.find(id);
    const bool read = snapshot.as_of <= Offset{24};
    require(known == nullptr || !read || known->expected == end);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2 || size > 30'000) return 0;
  const ByteView input(reinterpret_cast<const std::byte*>(data), size);
  const std::size_t first_bytes = std::min<std::size_t>(data[1] * std::size_t{32}, size - 2);
  test::FaultyStorage storage;
  const std::uint32_t version = (data[0] & 4) != 0 ? 2 : 1;
  put(storage, "0", input.subspan(2, first_bytes), (data[0] & 1) != 0 ? version : 0);
  put(storage, "1", input.subspan(2 + first_bytes), (data[0] & 2) != 0 ? version : 0);
  ProducerFile file(storage, directory);
  const auto loaded = file.load();
  if (!loaded) {
    require(loaded.error().code == ErrorCode::corrupt || loaded.error().code == ErrorCode::foreign_format);
    require(loaded.error().message.find(": position ") != std::string::npos);
    require(file.remove().ok() && !ProducerFile(storage, directory).load()->has_value());
    return 0;
  }
  require(loaded->has_value() && (**loaded).producers.size() <= broker::producer_file_entries_max);
  recover(**loaded);
  require(file.write(ProducerFile::encode(**loaded)).ok());
  storage.power_cut([] { return false; });
  require(*ProducerFile(storage, directory).load() == *loaded);
  return 0;
}
