/// Tests of broker/topic_directories: which topics' files a start removes.
#include "broker/topic_directories.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "control/catalogue_room.hpp"

namespace lightq::broker {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TopicDirectories : public ::testing::Test {
 protected:
  void make(const std::string& name) {
    fs::create_directories(topics / name);
    std::ofstream(topics / name / "00000000000000000000.seg") << "messages";
  }
  std::unique_ptr<Catalogue> open() {
    auto options = room.options();
    options.topics_with_files = topics_with_files(topics).value();
    return Catalogue::open(room.path(), std::move(options), room.sink).value();
  }

  test::CatalogueRoom room;
  const fs::path topics = room.directory / "topics";
};

TEST_F(TopicDirectories, AreNamedByIdsAsTheBrokerWritesThem) {
  for (const char* name : {"12", "2", "007", "0", "1x", "lost+found", "-3", "99999999999999999999"})
    make(name);
  EXPECT_THAT(topics_with_files(topics).value(), ElementsAre(TopicId{2}, TopicId{12}));
  EXPECT_FALSE(topics_with_files(topics / "absent").ok());
}

TEST_F(TopicDirectories, AreRemovedOnlyIfARecordRequestsIt) {
  {
    const auto catalogue = room.open();
    for (const char* topic : {"there", "removed"})
      ASSERT_TRUE(catalogue->add_topic(test::name(topic), {}, 0).ok());
    ASSERT_TRUE(catalogue->remove_topic({2}).ok());
  }
  for (const char* name : {"1", "2", "3", "odd"}) make(name);
  const auto catalogue = open();
  const auto found = topics_with_files(topics).value();
  ASSERT_TRUE(remove_deleted_topics(topics, found, *catalogue, room.sink).ok());
  EXPECT_TRUE(fs::exists(topics / "1"));
  EXPECT_FALSE(fs::exists(topics / "2"));
  EXPECT_TRUE(fs::exists(topics / "3" / "00000000000000000000.seg"));
  EXPECT_TRUE(fs::exists(topics / "odd"));
  EXPECT_THAT(catalogue->state().removed_topics(), ::testing::IsEmpty());
  EXPECT_THAT(room.sink.lines, Contains(HasSubstr("has no record of 1 topics with files in " +
                                                  topics.string() + ": 3. The files are kept")));
}

}  // namespace
}  // namespace lightq::broker
