/// Tests of the file of known producers: two files in turn, torn writes, and invalid files.
#include "delivery/producers/producer_file.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <lightq/base/bytes.hpp>
#include <lightq/base/crc32c.hpp>

#include "support/faulty_storage.hpp"

namespace lightq::broker {
namespace {

using test::FaultyStorage;

const std::string directory = "/topics/1";
const std::string slots[] = {directory + "/producers.0", directory + "/producers.1"};

ProducerSnapshot snapshot_of(std::uint64_t as_of, std::size_t producers) {
  ProducerSnapshot snapshot{{as_of}, {}};
  for (std::size_t i = 1; i <= producers; ++i) {
    snapshot.producers.push_back({{~std::uint64_t{0} - i, static_cast<std::uint16_t>(65536 - i)},
                                  i * i,
                                  {-1'000'000 + 7 * std::int64_t(i)}});
  }
  return snapshot;
}

/// Returns the snapshot with each kind of owner, and a secret.
ProducerSnapshot owned(ProducerSnapshot snapshot) {
  const std::optional<std::uint64_t> owners[] = {0, 42, FairShare::anonymous, std::nullopt};
  for (std::size_t i = 0; i < snapshot.producers.size(); ++i) {
    KnownProducer& producer = snapshot.producers[i];
    producer.owner = owners[i % std::size(owners)];
    if (producer.owner != FairShare::anonymous) continue;
    std::byte value{0};
    for (std::byte& byte : producer.secret.emplace())
      byte = value = std::byte(std::to_integer<int>(value) + 17);
  }
  return snapshot;
}

const ProducerSnapshot without_owners = snapshot_of(7, 3);
const ProducerSnapshot first = owned(without_owners);
const ProducerSnapshot second = owned(snapshot_of(~std::uint64_t{0}, 1));
const ProducerSnapshot largest = owned(snapshot_of(9, producer_file_entries_max));
const ProducerSnapshot nobody = snapshot_of(10, 0);

class ProducerFileTest : public testing::Test {
 protected:
  Result<void> write(const ProducerSnapshot& snapshot) { return file.write(ProducerFile::encode(snapshot)); }
  Result<std::optional<ProducerSnapshot>> load() { return ProducerFile(storage, directory).load(); }
  void expect_loads(const ProducerSnapshot& snapshot) {
    const auto loaded = load();
    ASSERT_TRUE(loaded.ok()) << loaded.error().text();
    EXPECT_EQ(*loaded, snapshot);
  }
  /// Makes the checksum of the first slot's bytes valid again.
  void mend(std::vector<std::byte>& bytes) {
    const std::uint32_t of_version = crc32c(ByteView(bytes).subspan(8, 4));
    store_little_endian(bytes.data() + 12, crc32c(ByteView(bytes).subspan(16), of_version));
  }

  static std::vector<std::byte> golden(const std::string& name) {
    std::ifstream file(std::string(LIGHTQ_GOLDEN_DIR) + "/" + name, std::ios::binary);
    EXPECT_TRUE(file.good()) << name;
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    return {as_byte_view(text).begin(), as_byte_view(text).end()};
  }
  /// Makes a file with these bytes the only one.
  void plant(const std::vector<std::byte>& bytes) {
    ASSERT_TRUE(file.remove().ok() && storage.open(slots[0], log::OpenMode::create).ok());
    storage.bytes_of(slots[0]) = bytes;
  }

  FaultyStorage storage;
  ProducerFile file{storage, directory};
};

TEST_F(ProducerFileTest, IsNothingBeforeTheFirstWriteAndAfterItsRemoval) {
  EXPECT_EQ(*load(), std::nullopt);
  EXPECT_TRUE(storage.paths().empty());
  ASSERT_TRUE(write(first).ok() && write(second).ok() && file.remove().ok());
  storage.power_cut([] { return false; });
  EXPECT_EQ(*load(), std::nullopt);
  EXPECT_TRUE(storage.paths().empty());
  ASSERT_TRUE(write(second).ok());
  storage.power_cut([] { return false; });
  expect_loads(second);
}

TEST_F(ProducerFileTest, LoadsTheNewestWrittenState) {
  for (const auto& snapshot : {first, second, largest, nobody, second}) {
    ASSERT_TRUE(write(snapshot).ok());
    expect_loads(snapshot);
    storage.power_cut([] { return false; });
    expect_loads(snapshot);
  }
  EXPECT_EQ(storage.paths().size(), 2U);
}

TEST_F(ProducerFileTest, FallsBackWhicheverByteOfTheNewestIsDamaged) {
  ASSERT_TRUE(write(second).ok() && write(first).ok());
  const auto good = storage.bytes_of(slots[1]);
  for (std::size_t at = 0; at < good.size(); ++at) {
    storage.bytes_of(slots[1])[at] ^= std::byte{0x20};
    ProducerFile damaged(storage, directory);
    const auto loaded = damaged.load();
    ASSERT_TRUE(loaded.ok()) << at;
    EXPECT_EQ(*loaded, second) << at;
    ASSERT_TRUE(damaged.passed_over().has_value());
    EXPECT_NE(damaged.passed_over()->message.find(slots[1] + ": position "), std::string::npos);
    storage.bytes_of(slots[1]) = good;
  }
  for (std::size_t size = 0; size < good.size(); ++size) {
    storage.bytes_of(slots[1]).resize(size);
    expect_loads(second);
    storage.bytes_of(slots[1]) = good;
  }
}

TEST_F(ProducerFileTest, ReportsUnreadableContentWithItsPosition) {
  const auto refused = [&](ErrorCode code, const std::string& where) {
    const auto loaded = load();
    ASSERT_FALSE(loaded.ok());
    EXPECT_EQ(loaded.error().code, code);
    EXPECT_EQ(loaded.error().message.rfind(slots[0] + ": position " + where, 0), 0U)
        << loaded.error().message;
  };
  ASSERT_TRUE(write(first).ok());
  auto& bytes = storage.bytes_of(slots[0]);
  const auto good = bytes;
  bytes.back() ^= std::byte{1};
  refused(ErrorCode::corrupt, "12: wrong checksum");
  bytes = good;
  bytes[8] = std::byte{3};
  refused(ErrorCode::foreign_format, "8: a producer file of version 3, not 1 to 2");
  bytes = good;
  std::reverse(bytes.begin(), bytes.begin() + 8);
  refused(ErrorCode::foreign_format, "0: a producer file of the other byte order");
  bytes[0] = std::byte{'X'};
  refused(ErrorCode::foreign_format, "0: not a producer file");
}

// A torn file in the other slot must not hide that this file comes from another version.
TEST_F(ProducerFileTest, NamesTheForeignFileOfTwoThatCannotBeRead) {
  ASSERT_TRUE(write(first).ok() && write(second).ok());
  storage.bytes_of(slots[0])[8] = std::byte{3};
  storage.bytes_of(slots[1]).back() ^= std::byte{1};
  EXPECT_EQ(load().error().code, ErrorCode::foreign_format);
}

// The checksums are valid: only the counts and ids themselves are wrong.
TEST_F(ProducerFileTest, RefusesEntriesThatCannotBe) {
  ASSERT_TRUE(write(first).ok());
  auto& bytes = storage.bytes_of(slots[0]);
  const auto good = bytes;
  for (const std::uint32_t count : {0U, 2U, 4U, 10'001U, 0xFFFFFFFFU}) {
    bytes = good;
    store_little_endian(bytes.data() + 28, count);
    mend(bytes);
    EXPECT_EQ(load().error().code, ErrorCode::corrupt) << count;
  }
  bytes = good;
  store_little_endian(bytes.data() + 40, std::uint64_t{0});
  mend(bytes);
  EXPECT_EQ(load().error().code, ErrorCode::corrupt) << "no producer has the id 0";
  // The last of the three entries has an owner and a secret.
  const std::size_t last = good.size() - 52;
  for (const auto& [at, what] :
       {std::pair{last + 27, "an unknown flag"}, std::pair{last - 52 + 36, "a secret without its flag"}}) {
    bytes = good;
    bytes[at] ^= std::byte{0x80};
    mend(bytes);
    EXPECT_EQ(load().error().code, ErrorCode::corrupt) << what;
  }
}

TEST_F(ProducerFileTest, AHugeFileCostsNoMoreThanTheLargestSoundOne) {
  ASSERT_TRUE(write(largest).ok());
  auto& bytes = storage.bytes_of(slots[0]);
  const std::size_t sound_bytes = bytes.size();
  bytes.resize(sound_bytes + 50'000'000);
  storage.on_read = [&](const std::string&, std::uint64_t position, std::size_t count) {
    EXPECT_LE(position + count, sound_bytes);
    return false;
  };
  expect_loads(largest);
  store_little_endian(bytes.data() + 24, std::uint32_t{40'000'000});
  EXPECT_EQ(load().error().code, ErrorCode::corrupt);
}

TEST_F(ProducerFileTest, KeepsTheLastGoodOneOverAnyNumberOfFailedWrites) {
  ASSERT_TRUE(write(first).ok() && write(second).ok());
  for (int round = 0; round < 3; ++round) {
    storage.on_call = [n = 0](FaultyStorage::Call call, const std::string&) mutable {
      if (call != FaultyStorage::Call::write) return FaultyStorage::Fault{};
      return ++n == 1 ? FaultyStorage::Fault{0, 20} : FaultyStorage::Fault{ENOSPC, 0};
    };
    EXPECT_EQ(write(largest).error().code, ErrorCode::no_space);
    storage.on_call = nullptr;
    expect_loads(second);
  }
  ASSERT_TRUE(write(largest).ok());
  expect_loads(largest);
}

TEST_F(ProducerFileTest, ReadsAndWritesFilesOfVersion2Unchanged) {
  ASSERT_TRUE(write(nobody).ok() && write(first).ok());
  const std::string path = std::string(LIGHTQ_GOLDEN_DIR) + "/producers.v2";
  const auto& today = storage.bytes_of(slots[1]);
  if (std::getenv("LIGHTQ_WRITE_GOLDEN") != nullptr && !std::filesystem::exists(path)) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(today.data()), static_cast<std::streamsize>(today.size()));
  }
  const std::vector<std::byte> kept = golden("producers.v2");
  EXPECT_TRUE(kept == today);
  plant(kept);
  expect_loads(first);
}

// Producers of a file from before ids had owners belong to no user.
TEST_F(ProducerFileTest, FilesOfVersion1AreStillRead) {
  plant(golden("producers.v1"));
  expect_loads(without_owners);
  ASSERT_TRUE(ProducerFile(storage, directory).write(ProducerFile::encode(first)).ok());
  expect_loads(first);
}

}  // namespace
}  // namespace lightq::broker
