/// Tests reading storage keys from texts and files.
#include "crypto/storage_keys.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "crypto/storage_key_file.hpp"
#include "support/storage_keys.hpp"
#include "support/temp_dir.hpp"

namespace lightq::rest {
namespace {

using test::key_line;

TEST(StorageKeysTest, AreLinesOfHexadecimalDigits) {
  const auto keys = StorageKeys::parse(
      "# what was used until May\n\n  " + key_line(0xAB) + key_line(0xCD).substr(0, 64) + "  # older\r\n",
      "x");
  ASSERT_TRUE(keys.ok()) << keys.error().text();
  EXPECT_EQ((*keys)->size(), 2U);
  EXPECT_EQ((*keys)->of(1)->key_id(), test::storage_keys({0xAB})->of(1)->key_id()) << "the first is in use";
  std::string capitals = key_line(0xAB);
  for (char& c : capitals) c = static_cast<char>(std::toupper(c));
  EXPECT_EQ((*StorageKeys::parse(capitals, "x"))->of(1)->key_id(), (*keys)->of(1)->key_id());
}

TEST(StorageKeysTest, OtherContentIsRefusedWithoutShowingIt) {
  const std::string key = key_line(0x5A).substr(0, 64);
  for (const std::string& wrong : {key.substr(1), key + "0", "x" + key.substr(1), key + " " + key,
                                   key.substr(0, 62) + "zz", std::string(64, '\0'), "0x" + key}) {
    const auto keys = StorageKeys::parse("# one\n" + wrong + "\n", "keys.txt");
    ASSERT_FALSE(keys.ok()) << wrong;
    EXPECT_EQ(keys.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(keys.error().message, "keys.txt, line 2: not a key of 64 hexadecimal digits");
  }
  for (const char* none : {"", "\n\n", "# nothing\n"})
    EXPECT_EQ(StorageKeys::parse(none, "keys.txt").error().message, "keys.txt contains no key");
  std::string many;
  for (std::size_t i = 0; i <= limits::storage_keys_max; ++i) many += key_line(static_cast<unsigned char>(i));
  EXPECT_EQ(StorageKeys::parse(many, "x").error().code, ErrorCode::limit_reached);
  EXPECT_TRUE(StorageKeys::parse(many.substr(65), "x").ok());
}

class StorageKeyFileTest : public testing::Test {
 protected:
  void put(const std::string& text, mode_t mode) {
    std::ofstream(file) << text;
    ASSERT_EQ(chmod(file.c_str(), mode), 0);
  }
  test::TempDir directory;
  const std::string file = directory.path() + "/storage.keys";
};

TEST_F(StorageKeyFileTest, IsReadIfOnlyItsOwnerCanReadIt) {
  put(key_line(3), 0600);
  EXPECT_EQ((*read_storage_keys(file))->size(), 1U);
  std::filesystem::create_symlink(file, directory.path() + "/link");
  EXPECT_TRUE(read_storage_keys(directory.path() + "/link").ok());
  for (const auto& [open, text] : {std::pair(0640, "0640"), {0604, "0604"}, {0620, "0620"}, {0602, "0602"}}) {
    put(key_line(3), static_cast<mode_t>(open));
    const auto keys = read_storage_keys(file);
    ASSERT_FALSE(keys.ok());
    EXPECT_EQ(keys.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(keys.error().message,
              file + " contains the storage keys and is open to other users: its mode is " + text +
                  "; chmod 600 it");
  }
}

TEST_F(StorageKeyFileTest, AFileWithoutKeysIsRefused) {
  EXPECT_EQ(read_storage_keys(file).error().code, ErrorCode::io_error);
  EXPECT_EQ(read_storage_keys(file).error().system_error, ENOENT);
  put("secret words", 0600);
  EXPECT_EQ(read_storage_keys(file).error().message, file + ", line 1: not a key of 64 hexadecimal digits");
  put(key_line(1) + "#" + std::string(limits::storage_key_text_bytes_max, 'x'), 0600);
  EXPECT_EQ(read_storage_keys(file).error().message, file + ": more than 65536 bytes");
  std::filesystem::create_directory(directory.path() + "/there");
  ASSERT_EQ(chmod((directory.path() + "/there").c_str(), 0700), 0);
  EXPECT_EQ(read_storage_keys(directory.path() + "/there").error().code, ErrorCode::io_error);
}

TEST_F(StorageKeyFileTest, MayBeAPipeWhichIsNotWaitedForForEver) {
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  const auto late = read_storage_keys(file, {.time_max = std::chrono::milliseconds(20)});
  ASSERT_FALSE(late.ok()) << "nobody writes";
  EXPECT_EQ(late.error().code, ErrorCode::timeout);
  std::jthread writer([this] { std::ofstream(file) << key_line(3) << key_line(4); });
  const auto keys = read_storage_keys(file);
  ASSERT_TRUE(keys.ok()) << keys.error().text();
  EXPECT_EQ((*keys)->size(), 2U);
}

}  // namespace
}  // namespace lightq::rest
