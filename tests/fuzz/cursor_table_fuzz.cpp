/// Fuzz target: opens a cursor table of any bytes, uses it, repairs it as its owner may, and opens it again.
/// No name may be there twice, no damaged cursor may be taken for a new one, and all commits must be found
/// again.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "log/saved_state/cursor_table.hpp"
#include "support/faulty_storage.hpp"

namespace {

using namespace lightq;

constexpr std::uint64_t incarnation = 1;
const std::string path = "/queue/cursors.table";

void require(bool condition) {
  if (!condition) std::abort();
}

/// Corrects checksums where the input's bytes ask for it, so that the code behind the checks is reached too.
void mend(std::vector<std::byte>& file) {
  const auto page = log::encode_cursor_table_header(incarnation);
  std::copy_n(page.begin(), std::min(page.size(), file.size()), file.begin());
  for (std::size_t index = 0; log::cursor_block_position(index + 1) <= file.size(); ++index) {
    std::byte* block = file.data() + log::cursor_block_position(index);
    std::byte* identity = block + log::cursor_identity_position;
    const int what = std::to_integer<int>(identity[0]);
    if (what % 8 == 0) continue;  // unchanged
    const std::size_t length =
        std::to_integer<std::size_t>(identity[1]) % (limits::cursor_name_bytes_max + 1);
    log::CursorIdentity mended{what % 8 != 1 && length != 0, load_little_endian<std::uint16_t>(identity + 2),
                               std::string(as_text({identity + 32, length}))};
    const auto bytes = log::encode_cursor_identity(mended, index, incarnation);
    std::copy(bytes.begin(), bytes.end(), identity);
    const auto seed = log::cursor_copy_seed(mended, index, incarnation);
    const std::size_t places[] = {0, log::cursor_copy_bytes, log::cursor_durable_position,
                                  log::cursor_durable_position + log::cursor_durable_stride};
    for (std::size_t i = 0; i < 4; ++i) {
      std::byte* copy = block + places[i];
      if ((what >> 3 & 1 << i) == 0) continue;
      store_little_endian(copy + log::cursor_copy_at_crc,
                          crc32c({copy, log::cursor_copy_checked_bytes}, seed));
    }
  }
}

/// Returns the names in the table. Checks that the table agrees with itself.
std::set<std::string> names_of(log::CursorTable& table) {
  std::set<std::string> names;
  for (const auto& cursor : table.list()) {
    require(!cursor.name.empty() && cursor.name.size() <= limits::cursor_name_bytes_max);
    require(names.insert(cursor.name).second && cursor.committed <= cursor.delivered);
    const auto found = table.find(cursor.name);
    require(found.ok() && *found != nullptr && (*found)->committed() == cursor.committed);
  }
  for (const auto& damaged : table.damaged()) {
    require(!names.contains(damaged.name) && damaged.error.code == ErrorCode::corrupt);
    require(!table.find(damaged.name).ok());
  }
  return names;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1 || size > 30'000) return 0;
  test::FaultyStorage storage;
  require(storage.open(path, log::OpenMode::create).ok() && storage.sync_directory("/queue").ok());
  auto& file = storage.bytes_of(path);
  const bool mended = (data[0] & 1) != 0;
  file.assign(mended ? log::cursor_table_header_bytes : 0, std::byte{0});
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  file.insert(file.end(), bytes + 1, bytes + size);
  if (mended) mend(file);

  auto opened = log::CursorTable::open(storage, "/queue", incarnation);
  if (!opened) {
    require(opened.error().code == ErrorCode::corrupt || opened.error().code == ErrorCode::foreign_format);
    return 0;
  }
  auto names = names_of(**opened);
  const bool any_damage = !(*opened)->damaged().empty();
  require((*opened)->forget_damaged().ok() && (*opened)->damaged().empty());
  require(any_damage || names_of(**opened) == names);
  if (!names.contains("one more")) {
    require((*opened)->create("one more", {7}).ok());
    names.insert("one more");
  }
  std::uint64_t next = 100;
  for (const auto& name : names) (**(*opened)->find(name)).commit({next++});
  require((*opened)->flush().ok());
  opened->reset();
  storage.power_cut([] { return false; });
  opened = log::CursorTable::open(storage, "/queue", incarnation);
  require(opened.ok() && (*opened)->damaged().empty() && names_of(**opened) == names);
  next = 100;
  for (const auto& name : names) require((**(*opened)->find(name)).committed() == Offset{next++});
  return 0;
}
