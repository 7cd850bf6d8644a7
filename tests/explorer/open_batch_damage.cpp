/// Damages the batch that was being packed when a process was killed.
#include "explorer/open_batch_damage.hpp"

#include "explorer/log_client.hpp"

namespace lightq::test {

std::optional<std::string> flip_open_batch(std::uint64_t& cases) {
  ExplorerWorld world;
  Payloads payloads;
  ExplorerStorage disk(world);
  static_cast<void>(disk.make_directory("/topics"));
  LogClient writer(disk, payloads);
  writer.options.mapped_writes = true;
  writer.open(Ending::kill);
  for (const std::size_t bytes : {40, 0, 7, 64, 300}) writer.pack(bytes);
  const std::string path = writer.log()->segments().active().path();
  const History history = writer.history;
  writer.close();
  ExplorerStorage scratch(world);
  LogClient reader(scratch, payloads);
  reader.options = writer.options;
  for (std::size_t bit = 0; bit < 8 * (log::segment_header_bytes + 600); ++bit) {
    reader.close();
    scratch.become_same(disk);
    scratch.bytes_of(path)[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    reader.history = history;
    reader.violation.reset();
    reader.died_opening = true;  // damage found once need not be reported
    const bool opens = reader.open(Ending::power_cut);
    ++cases;
    if (opens && reader.violation) return "bit " + std::to_string(bit) + " flipped: " + *reader.violation;
  }
  return std::nullopt;
}

}  // namespace lightq::test
