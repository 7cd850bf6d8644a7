/// Fuzz target: cursor files of any bytes. They are refused, or load as cursors that are written and loaded
/// again as the same.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <lightq/base/crc32c.hpp>

#include "log/saved_state/cursor_file.hpp"
#include "support/faulty_storage.hpp"

namespace {

using namespace lightq;

const std::string directory = "/topics/1";

void require(bool condition) {
  if (!condition) std::abort();
}

/// Corrects the header, so that the code behind the checksum is reached too. Leaves the sequence and the
/// number of entries.
void mend(std::vector<std::byte>& file, std::uint32_t version) {
  if (file.size() < 32) return;
  store_little_endian(file.data(), std::uint64_t{0x0A1A0A0D5255434C});
  store_little_endian(file.data() + 8, version);
  store_little_endian(file.data() + 24, static_cast<std::uint32_t>(file.size()));
  const std::uint32_t of_version = version == 1 ? 0 : crc32c(ByteView(file).subspan(8, 4));
  store_little_endian(file.data() + 12, crc32c(ByteView(file).subspan(16), of_version));
}

/// Checks that dead messages are unfinished, and dead in one way only.
void check_dead(const log::Unfinished& unfinished) {
  const log::SavedDead& saved = unfinished.dead;
  log::OffsetSet dead = saved.parked;
  saved.outbox.for_each([&](OffsetRange run) {
    require(dead.count_in(run) == 0);
    dead.add(run);
  });
  dead.for_each(
      [&](OffsetRange run) { require(unfinished.messages.count_in(run) == distance(run.begin, run.end)); });
  saved.rejected.for_each(
      [&](OffsetRange run) { require(dead.count_in(run) == distance(run.begin, run.end)); });
  log::OffsetSet under_way;
  for (const Offset message : saved.under_way) {
    require(saved.outbox.contains(message) && !under_way.contains(message));
    under_way.add({message, message + 1});
  }
  require(saved.under_way.size() <= log::SavedDead::under_way_max);
  require(saved.first_number != 0 && saved.first_number <= log::SavedDead::first_number_max);
  require((saved.incarnation == 0) == (saved.target == 0));
  for (const log::SavedDeath& record : saved.records) require(dead.contains(record.offset));
  const auto lives = [&](const auto& part) {
    part.second.for_each([&](OffsetRange run) {
      require(unfinished.messages.count_in(run) == distance(run.begin, run.end) && dead.count_in(run) == 0);
    });
  };
  std::ranges::for_each(saved.first_failures, lives);
  if (!dead.empty()) std::ranges::for_each(unfinished.delayed, lives);
}

/// Checks that a cursor is possible: its sets are parts of its messages, which lie between its offset and
/// `next`.
void check(const log::NamedCursor& cursor) {
  const log::Unfinished& unfinished = cursor.unfinished;
  const log::OffsetSet& messages = unfinished.messages;
  require(cursor.offset <= unfinished.next);
  require(messages.count_in({cursor.offset, unfinished.next}) == messages.size());
  std::uint64_t delayed = 0;
  for (const auto& [due, part] : unfinished.delayed) {
    part.for_each([&](OffsetRange run) { require(messages.count_in(run) == distance(run.begin, run.end)); });
    delayed += part.size();
  }
  require(delayed <= messages.size());
  require(unfinished.delivery_bits.size() <= log::Unfinished::delivery_bits_max);
  for (const log::OffsetSet& bit : unfinished.delivery_bits)
    bit.for_each([&](OffsetRange run) { require(messages.count_in(run) == distance(run.begin, run.end)); });
  check_dead(unfinished);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1 || size > 30'000) return 0;
  const ByteView input(reinterpret_cast<const std::byte*>(data), size);
  test::FaultyStorage storage;
  const std::string path = directory + "/cursors.0";
  require(storage.open(path, log::OpenMode::create).ok());
  auto& file = storage.bytes_of(path);
  file.assign(input.begin() + 1, input.end());
  if (data[0] % 5 != 0) mend(file, data[0] % 5);
  const auto loaded = log::CursorFile(storage, directory).load();
  if (!loaded) {
    require(loaded.error().code == ErrorCode::corrupt || loaded.error().code == ErrorCode::foreign_format);
    return 0;
  }
  for (const log::NamedCursor& cursor : *loaded) check(cursor);
  require(log::CursorFile(storage, "/again").write(log::CursorFile::encode(*loaded)).ok());
  require(*log::CursorFile(storage, "/again").load() == *loaded);
  for (log::NamedCursor cursor : *loaded) {
    const Offset middle{cursor.offset.value / 2 + cursor.next().value / 2};
    const bool is_longer = middle < cursor.next();
    require(cursor.cut_at(middle) == is_longer && cursor.next() <= middle);
    check(cursor);
  }
  return 0;
}
