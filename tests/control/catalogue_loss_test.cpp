/// Tests of control/catalogue/catalogue: a catalogue that has lost records, and the topics that it remembers
/// as removed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "control/catalogue/catalogue.hpp"
#include "control/catalogue_room.hpp"
#include "support/no_descriptors.hpp"

namespace lightq::broker {
namespace {

using test::CatalogueRoom;
using test::name;
using testing::HasSubstr;

/// Changes one byte in the only file that contains `text`.
void damage(const std::string& directory, const std::string& text) {
  for (const auto& file : std::filesystem::recursive_directory_iterator(directory)) {
    if (!file.is_regular_file()) continue;
    std::fstream stream(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(stream)), {});
    const auto at = bytes.find(text);
    if (at == std::string::npos) continue;
    stream.clear();
    stream.seekp(static_cast<std::streamoff>(at));
    stream.put('#');
    return;
  }
  ADD_FAILURE() << text << " is nowhere";
}

TEST(CatalogueLoss, IsRefusedWithADamagedRecordAndRemovesNothing) {
  CatalogueRoom room;
  {
    const auto catalogue = room.open();
    for (const char* topic : {"first", "second", "third"}) {
      ASSERT_TRUE(catalogue->add_topic(name(topic), {}, 0).ok());
    }
    ASSERT_TRUE(catalogue->flush().ok());
  }
  damage(room.path(), "second");
  std::filesystem::create_directory(room.path() + "/00000000");
  for (int start = 0; start < 2; ++start) {
    const auto opened = room.try_open();
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().code, ErrorCode::corrupt);
    EXPECT_THAT(opened.error().message, HasSubstr("1 records of topics, users or rights are damaged"));
    EXPECT_THAT(opened.error().message, HasSubstr("lightq log repair " + room.path() + "/00000001 --force"));
  }
  EXPECT_TRUE(std::filesystem::exists(room.path() + "/00000000")) << "what came before";
}

TEST(CatalogueLoss, WithoutARecordBesideFilesOfTopicsIsRefused) {
  CatalogueRoom room;
  auto options = room.options();
  options.topics_with_files = {{3}};
  const auto opened = Catalogue::open(room.path(), options, room.sink);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::corrupt);
  EXPECT_THAT(opened.error().message, HasSubstr("files of 1 topics (topics/3)"));
  EXPECT_FALSE(std::filesystem::exists(room.path())) << "nothing is made";
  ASSERT_NE(room.open(), nullptr);
  EXPECT_FALSE(Catalogue::open(room.path(), options, room.sink).ok()) << "one without records";
}

TEST(CatalogueLoss, ALaterGenerationWithoutARecordIsRefused) {
  CatalogueRoom room;
  ASSERT_TRUE(room.open()->add_topic(name("t"), {}, 0).ok());
  std::filesystem::create_directory(room.path() + "/00000002");
  EXPECT_FALSE(room.try_open().ok());
  std::filesystem::remove_all(room.path() + "/00000002");
  EXPECT_NE(room.open()->state().find("t"), nullptr) << "the earlier one was kept";
}

TEST(CatalogueLoss, GivesNoNewTopicAnIdWithFiles) {
  CatalogueRoom room;
  ASSERT_TRUE(room.open()->add_topic(name("t"), {}, 0).ok());
  auto options = room.options();
  options.topics_with_files = {{1}, {7}};
  const auto catalogue = Catalogue::open(room.path(), options, room.sink);
  ASSERT_TRUE(catalogue.ok());
  EXPECT_EQ((*catalogue)->add_topic(name("new"), {}, 0)->id.value, 8U);
}

TEST(CatalogueLoss, ContinuesWhenADescriptorIsFreeForItsFlush) {
  CatalogueRoom room;
  const auto catalogue = room.open();
  ASSERT_TRUE(catalogue->add_topic(name("first"), {}, 0).ok());
  {
    const lightq::test::NoDescriptors none;
    EXPECT_FALSE(catalogue->flush().ok());
  }
  ASSERT_TRUE(catalogue->unflushed());
  EXPECT_TRUE(catalogue->flush().ok());
  EXPECT_TRUE(catalogue->add_topic(name("second"), {}, 0).ok());
}

/// A catalogue with a new log that is written, but has not replaced the old one yet.
class CatalogueReplaced : public testing::Test {
 protected:
  CatalogueReplaced() {
    auto options = room.options();
    options.open_log = [this, open = options.open_log](
                           const std::filesystem::path& path) -> Result<std::unique_ptr<log::Log>> {
      if (no_log) return Error{ErrorCode::io_error, "told to fail", EMFILE};
      return open(path);
    };
    catalogue = Catalogue::open(room.path(), std::move(options), room.sink).value();
    EXPECT_TRUE(catalogue->add_topic(name("first"), {}, 0).ok());
    EXPECT_TRUE(catalogue->flush().ok());
    compaction = catalogue->begin_compaction();
    compaction->run({});
  }
  void expect_both_topics() {
    EXPECT_TRUE(catalogue->add_topic(name("second"), {}, 0).ok());
    EXPECT_TRUE(catalogue->flush().ok());
    catalogue.reset();
    no_log = false;
    const auto again = room.open();
    for (const char* topic : {"first", "second"}) EXPECT_NE(again->state().find(topic), nullptr) << topic;
  }

  bool no_log = false;
  CatalogueRoom room;
  std::unique_ptr<Catalogue> catalogue;
  std::unique_ptr<CatalogueCompaction> compaction;
};

TEST_F(CatalogueReplaced, KeepsItsLogIfNoDescriptorIsFreeForTheChange) {
  {
    const lightq::test::NoDescriptors none;
    catalogue->finish_compaction(*compaction);
  }
  expect_both_topics();
}

TEST_F(CatalogueReplaced, OpensItsNewLogAsSoonAsThatWorks) {
  no_log = true;
  catalogue->finish_compaction(*compaction);
  EXPECT_FALSE(catalogue->add_topic(name("second"), {}, 0).ok());
  EXPECT_FALSE(catalogue->is_mostly_history());
  no_log = false;
  expect_both_topics();
}

TEST_F(CatalogueReplaced, IsNotCreatedAnewIfItsDirectoryIsAway) {
  no_log = true;
  catalogue->finish_compaction(*compaction);
  no_log = false;
  std::filesystem::rename(room.path(), room.path() + ".away");
  EXPECT_FALSE(catalogue->add_topic(name("second"), {}, 0).ok());
  EXPECT_FALSE(std::filesystem::exists(room.path()));
  std::filesystem::rename(room.path() + ".away", room.path());
  expect_both_topics();
}

TEST(CatalogueLoss, RemembersARemovedTopicUntilItsFilesAreGone) {
  CatalogueRoom room;
  {
    const auto catalogue = room.open();
    for (const char* topic : {"removed", "gone", "there"})
      ASSERT_TRUE(catalogue->add_topic(name(topic), {}, 0).ok());
    ASSERT_TRUE(catalogue->remove_topic({1}).ok());
    ASSERT_TRUE(catalogue->remove_topic({2}).ok());
    catalogue->forget_removed_topic({2});
    EXPECT_THAT(catalogue->state().removed_topics(), testing::ElementsAre(1));
    const auto compaction = catalogue->begin_compaction();
    compaction->run({});
    catalogue->finish_compaction(*compaction);
  }
  auto options = room.options();
  options.topics_with_files = {{1}, {2}, {3}};
  const auto catalogue = Catalogue::open(room.path(), options, room.sink);
  ASSERT_TRUE(catalogue.ok());
  EXPECT_THAT((*catalogue)->state().removed_topics(), testing::ElementsAre(1)) << "compaction keeps it";
  EXPECT_THAT(room.open()->state().removed_topics(), testing::IsEmpty()) << "no files are there";
}

}  // namespace
}  // namespace lightq::broker
